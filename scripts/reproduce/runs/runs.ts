import { clmf } from './clmf.ts';
import { cumf } from './cumf.ts';
import { cumfSgd } from './cumf-sgd.ts';
import type { PublishedRun } from './published-run.ts';

/** Experiments about time, which generate their ratings. */
export const runs: readonly PublishedRun[] = [cumf, cumfSgd, clmf];
