import { sgdChecks } from '../../../gpu/checks/sgd.check.ts';
import { describeChecks } from '../../support/gpu/run-checks.ts';

describeChecks('kernels of SGD on a GPU', sgdChecks);
