import type { RecordBatch, Schema } from 'apache-arrow';
import { readSplit } from '../../connectors/read-split.ts';
import type { Source, ValueNeeds } from '../../engine/stream/operator.ts';
import type { ByteRange, SourceSplit, SplitEnd } from '../../engine/stream/split.ts';
import { placeOf } from '../../engine/stream/stream.ts';

/** A row: its values as JSON, and its place. */
export type PlacedRow = readonly [values: string, place: string];

/** The rows, or the error that ends them. */
export type Outcome =
  | { readonly schema: string; readonly rows: readonly PlacedRow[] }
  | { readonly error: string };

export interface SplitOptions {
  readonly columns?: readonly string[];
  readonly needs?: ValueNeeds;
  /** Default: the splits of the source. */
  readonly cuts?: (splits: readonly SourceSplit[]) => readonly SourceSplit[];
}

export async function readWhole(source: Source, { columns, needs }: SplitOptions = {}): Promise<Outcome> {
  return outcomeOf(async () => {
    const stream = await source.execute(
      { signal: new AbortController().signal } as Parameters<Source['execute']>[0],
      columns,
      needs,
    );
    const rows: PlacedRow[] = [];
    for await (const batch of stream) rows.push(...rowsOf(batch));
    return { schema: stream.schema, rows };
  });
}

/**
 * Reads the splits one by one, each as by a thread that knows nothing but its JSON; a range whose guess was
 * wrong, or that has a fault, again.
 */
export async function readInSplits(
  source: Source,
  targetBytes: number,
  { columns, needs, cuts = (splits) => splits }: SplitOptions = {},
): Promise<Outcome & { readonly again: number }> {
  let again = 0;
  const outcome = await outcomeOf(async () => {
    const found = await source.splits?.(
      { signal: new AbortController().signal },
      columns,
      needs,
      targetBytes,
    );
    if (found === undefined) throw new Error('no splits');
    const rows: PlacedRow[] = [];
    let before = { endsAt: 0, rows: 0, lines: 0 };
    for (const split of cuts(JSON.parse(JSON.stringify(found.splits)) as SourceSplit[])) {
      if (split.range === undefined || split.range.from === 0) before = { endsAt: 0, rows: 0, lines: 0 };
      const { read, isAgain } = await readAfter(split, before, found.schema, needs);
      if (isAgain) again++;
      if ('error' in read) throw read.error;
      rows.push(...read.rows);
      if (read.end !== undefined)
        before = {
          endsAt: read.end.endsAt,
          rows: before.rows + read.rows.length,
          lines: before.lines + read.end.lines,
        };
    }
    return { schema: found.schema, rows };
  });
  return { ...outcome, again };
}

/** The end of the splits before one. */
interface Before {
  readonly endsAt: number;
  readonly rows: number;
  readonly lines: number;
}

/**
 * Reads a split after others: again from its known beginning where its guess was wrong. A right guess must
 * read the same as the known beginning.
 */
async function readAfter(
  split: SourceSplit,
  before: Before,
  schema: Schema,
  needs: ValueNeeds | undefined,
): Promise<{ readonly read: Attempt; readonly isAgain: boolean }> {
  const read = await attempt(split, schema, needs);
  const { range } = split;
  if (range === undefined || range.known) return { read, isAgain: false };
  const known = () => attempt({ ...split, range: knownFrom(range, before) }, schema, needs);
  if (!('end' in read && read.end?.startsAt === before.endsAt)) return { read: await known(), isAgain: true };
  const moved = await known();
  if (!('rows' in moved) || valuesOf(moved) !== valuesOf(read))
    throw new Error(`the range ${JSON.stringify(range)} reads otherwise from its known beginning`);
  return { read: moved, isAgain: false };
}

function valuesOf({ rows, end }: { readonly rows: PlacedRow[]; readonly end: SplitEnd | undefined }): string {
  return JSON.stringify([end, rows.map(([values]) => values)]);
}

type Attempt = { rows: PlacedRow[]; end: SplitEnd | undefined } | { error: unknown };

function knownFrom(range: ByteRange, { endsAt, rows, lines }: Before): ByteRange {
  return { ...range, from: endsAt, known: true, rows, lines };
}

async function attempt(split: SourceSplit, schema: Schema, needs: ValueNeeds | undefined): Promise<Attempt> {
  const rows: PlacedRow[] = [];
  const batches = readSplit(split, schema, {
    signal: new AbortController().signal,
    takesFaults: needs?.takesFaults ?? false,
  });
  try {
    for (;;) {
      const next = await batches.next();
      if (next.done) return { rows, end: next.value };
      rows.push(...rowsOf(next.value));
    }
  } catch (error) {
    return { error };
  }
}

async function outcomeOf(
  read: () => Promise<{ readonly schema: Schema; readonly rows: readonly PlacedRow[] }>,
): Promise<Outcome> {
  try {
    const { schema, rows } = await read();
    return { schema: String(schema), rows };
  } catch (error) {
    return { error: `${(error as Error).name}: ${(error as Error).message}` };
  }
}

function rowsOf(batch: RecordBatch): PlacedRow[] {
  const columns = batch.schema.fields.map((_, index) => batch.getChildAt(index));
  return Array.from({ length: batch.numRows }, (_, row) => {
    const values = columns.map((column) => column?.get(row) as unknown);
    return [
      JSON.stringify(values, (_key, value: unknown) =>
        typeof value === 'bigint' || Number.isNaN(value) ? String(value) : value,
      ),
      JSON.stringify(placeOf(batch, row)),
    ];
  });
}
