import { updateChecks } from '../../gpu/checks/all.ts';
import { describeChecks } from '../support/run-checks.ts';

describeChecks('kernels of a half-iteration on a GPU', updateChecks);
