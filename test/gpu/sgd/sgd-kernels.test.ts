import { sgdChecks } from '../../../gpu/checks/checks.ts';
import { describeChecks } from '../../support/gpu/run-checks.ts';

describeChecks('kernels of SGD on a GPU', sgdChecks);
