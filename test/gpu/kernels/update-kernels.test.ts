import { updateChecks } from '../../../gpu/checks/checks.ts';
import type { KernelCheck } from '../../../gpu/checks/support/check.ts';
import { describeChecks } from '../../support/gpu/run-checks.ts';

/** Real adapters run all checks. A software adapter takes minutes for large ranks, so it runs one above rank 1,024. */
const isQuick = ({ name, variant }: KernelCheck) => {
  const rank = Number(/^rank (\d+)/.exec(variant)?.[1] ?? 0);
  return name !== 'wide-products' || rank <= 1024 || (rank === 4096 && variant.includes('explicit'));
};

describeChecks('kernels of a half-iteration on a GPU', updateChecks.filter(isQuick));
