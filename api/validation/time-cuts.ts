import { DataError } from '../../engine/errors.ts';
import { counted } from '../../engine/format.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { type LogicalPlan, runInto } from '../../engine/stream/logical-plan.ts';
import { splitBounds } from '../../operators/splits/random-split.ts';
import { longerPrefix, LEVELS, numberOf, timeHistogram } from '../../operators/splits/time-split.ts';

/** A time that is searched by its rank, one digit after another; see operators/splits/time-split.ts. */
interface Target {
  /** Its position, from 0, among the times that start with `prefix`. */
  readonly rank: number;
  /** Number of rows with a smaller time, according to the known digits. */
  readonly below: number;
  /** The first two digits, and the last. */
  readonly prefix: number;
  readonly last: number;
}

/**
 * The times that split the rows into parts of the given weights: the cut after a share s of N rows is the
 * time of row round(s N) in time order. All rows of one time are on the same side, the later one: no training
 * row is as new as a test row. Exact, and independent of row order. Each pass counts one digit of the times:
 * two passes if times are whole seconds, else three. Memory: 32 MiB and 16 MiB per cut, for any number of
 * rows. Throws DataError if a part would be empty since its rows share a time with those before.
 */
export async function timeCuts(
  plan: LogicalPlan,
  column: string,
  weights: readonly number[],
  ctx: ExecutionContext,
): Promise<readonly number[]> {
  const shares = splitBounds(weights)
    .slice(1)
    .map(([from]) => from);
  let targets: readonly Target[] = [];
  let rows = 0;
  let lastDigitUsed = true;
  for (let level = 0; level < LEVELS && (level < LEVELS - 1 || lastDigitUsed); level++) {
    const prefixes = level === 0 ? [0] : [...new Set(targets.map(({ prefix }) => prefix))];
    const pass = await runInto(plan, timeHistogram(column, level, prefixes), ctx);
    if (pass.rows === 0) throw new DataError('there are no rows to split', { phase: 'time-split' });
    if (level === 0) pass.sizes.report(ctx);
    if (level === 0)
      targets = shares.map((share) => ({
        rank: Math.min(pass.rows - 1, Math.round(share * pass.rows)),
        below: 0,
        prefix: 0,
        last: 0,
      }));
    targets = targets.map((target) => narrowed(target, level, pass.counts[prefixes.indexOf(target.prefix)]));
    rows = pass.rows;
    lastDigitUsed = pass.lastDigitUsed;
  }
  const cuts = targets.map(({ prefix, last }) => numberOf(prefix, last));
  checkParts(cuts, targets, rows, column);
  ctx.events({
    type: 'note',
    text: `the time split cuts ${counted(rows, 'row')} at ${column} ${cuts.join(', ')}`,
  });
  return cuts;
}

function narrowed({ rank, below, prefix, last }: Target, level: number, counts: Float64Array): Target {
  let digit = 0;
  let smaller = 0;
  while (rank >= smaller + counts[digit]) smaller += counts[digit++];
  const known =
    level < LEVELS - 1 ? { prefix: longerPrefix(prefix, level, digit), last } : { prefix, last: digit };
  return { rank: rank - smaller, below: below + smaller, ...known };
}

function checkParts(cuts: readonly number[], targets: readonly Target[], rows: number, column: string): void {
  const ends = [0, ...targets.map(({ below }) => below), rows];
  const empty = ends.findIndex((end, i) => i > 0 && end === ends[i - 1]);
  if (empty < 0) return;
  throw new DataError(
    `part ${empty} of the time split would be empty: too many of the ${counted(rows, 'row')} have the time ${cuts[empty - 1]}`,
    {
      phase: 'time-split',
      column,
      advice: 'Rows of one time stay together: use fewer parts, other weights, or { before: time }',
    },
  );
}
