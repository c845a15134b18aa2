import { isDiskFull } from '../../connectors/output/new-file.ts';
import { FactorFlowError } from '../../engine/errors.ts';

/** True if the disk of this host is the reason: the same work can succeed on another one. */
export function isHostError(error: unknown): boolean {
  if (!(error instanceof FactorFlowError)) return false;
  return isDiskFull(error) || error.details.phase === 'spill' || error.summary.startsWith('spillDir ');
}
