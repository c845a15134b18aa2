import type { RecordBatch } from 'apache-arrow';
import { DataError, rowText } from '../../../engine/errors.ts';
import { counted } from '../../../engine/format.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { placeOf } from '../../../engine/stream/stream.ts';

export type BadRowPolicy = 'error' | 'skip';

/** Name of the run's measure that counts bad rows. */
export const BAD_ROWS = 'bad-rows';

/** Result of counting bad rows (rows that are not valid ratings) in a sequence of rows, as plain JSON. */
export type BadRows = {
  readonly count: number;
  readonly first: BadRow | null;
  /** Nonzero ratings that become 0 in float32; they are not bad rows. */
  readonly vanished: number;
};

export type BadRow = {
  /** Absent if the batch has no origin. */
  readonly place?: {
    readonly file?: string;
    readonly rowGroup?: number;
    readonly row?: number;
    readonly line?: number;
  };
  /** Row number within the sequence. */
  readonly row: number;
  readonly reason: string;
};

/** Counts the bad rows of a sequence, batch by batch. */
export class BadRowCounter {
  #count = 0;
  #first: BadRow | null = null;
  #rows = 0;
  #vanished = 0;

  /** Counts nonzero ratings that become 0 in float32. */
  addVanished(count: number): void {
    this.#vanished += count;
  }

  /** `bad`: bad rows of the batch; `reason` describes the first. */
  add(batch: RecordBatch, bad: readonly number[], reason: (row: number) => string): void {
    if (bad.length > 0 && this.#first === null) {
      const { file, rowGroup, row, line } = placeOf(batch, bad[0]) ?? {};
      this.#first = {
        ...(placeOf(batch, bad[0]) && { place: { file, rowGroup, row, line } }),
        row: this.#rows + bad[0],
        reason: reason(bad[0]),
      };
    }
    this.#count += bad.length;
    this.#rows += batch.numRows;
  }

  get found(): BadRows {
    return { count: this.#count, first: this.#first, vanished: this.#vanished };
  }
}

/** Adds up the bad rows of sequences, such as splits, that follow each other. */
export class BadRowTotal {
  #found: BadRows = { count: 0, first: null, vanished: 0 };

  add({ count, first, vanished }: BadRows): void {
    const { count: earlier, first: known, vanished: before } = this.#found;
    this.#found = { count: earlier + count, first: known ?? first, vanished: before + vanished };
  }

  get found(): BadRows {
    return this.#found;
  }
}

/** Corrects the position of the first bad row for the rows and lines of the file before the sequence. */
export function movedBy(found: BadRows, before: { readonly rows: number; readonly lines: number }): BadRows {
  const { first } = found;
  if (first?.place === undefined) return found;
  const { place } = first;
  const row = place.row === undefined ? {} : { row: place.row + before.rows };
  const line = place.line === undefined ? {} : { line: place.line + before.lines };
  return { ...found, first: { ...first, place: { ...place, ...row, ...line } } };
}

/**
 * Adds the number of bad rows to the run's metrics. Then, depending on the policy, sends a warning or throws
 * DataError.
 */
export function reportBadRows(
  { count, first, vanished }: BadRows,
  policy: BadRowPolicy,
  ctx: ExecutionContext,
): void {
  if (vanished > 0) {
    const are = vanished === 1 ? 'is' : 'are';
    const found = `${counted(vanished, 'rating')} other than 0 ${are} too small for float32`;
    ctx.events({ type: 'warning', text: `${found}, and taken as 0; scale the ratings` });
  }
  if (first === null) return;
  ctx.metrics.add(BAD_ROWS, { rows: count });
  const text = `${counted(count, 'bad row')}, the first in ${placeText(first)}: ${first.reason}`;
  if (policy === 'skip') ctx.events({ type: 'warning', text: `left out ${text}` });
  else
    throw new DataError(text, {
      phase: 'read',
      advice: "Clean the data, or leave such rows out with onBadRows: 'skip'",
    });
}

function placeText({ place, row }: BadRow): string {
  if (place === undefined) return `${rowText({ row })}`;
  const group = place.rowGroup === undefined ? '' : `, row group ${place.rowGroup}`;
  return `${place.file ?? 'the stream'}${group}, ${rowText(place)}`;
}
