import { sgdChecks } from '../../gpu/checks/all.ts';
import { describeChecks } from '../support/run-checks.ts';

describeChecks('kernels of SGD on a GPU', sgdChecks);
