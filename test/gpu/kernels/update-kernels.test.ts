import { updateChecks } from '../../../gpu/checks/checks.ts';
import { describeChecks } from '../../support/gpu/run-checks.ts';

describeChecks('kernels of a half-iteration on a GPU', updateChecks);
