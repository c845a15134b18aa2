import { type Data, DataType, Field, Float32, Float64, makeData, RecordBatch, Schema } from 'apache-arrow';
import { UsageError, DataError, rowText } from '../../../engine/errors.ts';
import { counted } from '../../../engine/format.ts';
import type { JsonObject } from '../../../engine/json.ts';
import {
  hasNulls,
  isNullAt,
  keysFromData,
  keysToVector,
  keyTypeOf,
  requireShortIds,
} from '../../../engine/keys/arrow-keys.ts';
import { takeKeys } from '../../../engine/keys/key-column.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import type { Operator, ValueNeeds } from '../../../engine/stream/operator.ts';
import {
  type BatchStream,
  batchStream,
  originOf,
  placeOf,
  setOrigin,
} from '../../../engine/stream/stream.ts';
import { batchOf, columnOf, RowOperator, sameRows } from '../../dataflow/row-operator.ts';
import {
  arrowTypeOf,
  fieldOf,
  keyTypeOfColumn,
  numbersOf,
  requireRatings,
  requireTimeValues,
  isText,
  numbersOfTexts,
  type OnRefusedText,
  timesOfTexts,
} from './columns.ts';
import { weighedByAge, type Weighing } from './recency.ts';

export type RatingColumns = {
  readonly user: string;
  readonly item: string;
  /** Absent for pairs without a rating. */
  readonly rating?: string;
  readonly timestamp?: string;
};

/**
 * Converts rows of any source to columns `user`, `item` (int32, int64 or utf8), `rating` float32 and, if
 * requested, `timestamp` float64. A row is bad if a value is null or could not be read, an id is not exact,
 * its rating is NaN or infinite (also after rounding to float32), or its time is. The policy `error` reads all rows to
 * count the bad ones, then throws DataError with their number and the position of the first; `skip` removes
 * them and reports their number. Values are views of the input, not copies, if the types allow it. `weighing`
 * replaces ratings by weights that halve with their age.
 */
export class SelectRatings implements Operator {
  readonly name = 'select-ratings';
  readonly columns: RatingColumns;
  readonly badRows: BadRowPolicy;
  readonly weighing: SelectedWeighing | undefined;

  constructor(columns: RatingColumns, badRows: BadRowPolicy = 'error', weighing?: SelectedWeighing) {
    this.columns = columns;
    this.badRows = badRows;
    this.weighing = weighing;
    const names = this.requiredColumns();
    if (new Set(names).size !== names.length) {
      throw new UsageError(
        `the user, item, rating and timestamp columns must differ, got ${names.join(', ')}`,
      );
    }
  }

  describe(): JsonObject {
    return { ...this.columns, badRows: this.badRows, ...(this.weighing && { weighing: this.weighing }) };
  }

  portable() {
    const { columns, badRows: policy, weighing } = this;
    return { operator: 'select-ratings', args: [columns, policy, ...(weighing ? [weighing] : [])] };
  }

  outputSchema(input: Schema): Schema {
    const all = this.#selectedSchema(input);
    if (this.weighing === undefined || this.weighing.keepsTimes) return all;
    return new Schema(all.fields.filter(({ name }) => name !== 'timestamp'));
  }

  #selectedSchema(input: Schema): Schema {
    const { user, item, rating, timestamp } = this.columns;
    const fields: Field[] = [
      new Field('user', arrowTypeOf(keyTypeOfColumn(input, user)), false),
      new Field('item', arrowTypeOf(keyTypeOfColumn(input, item)), false),
    ];
    if (rating !== undefined) {
      requireRatings(input, rating);
      fields.push(new Field('rating', new Float32(), false));
    }
    if (timestamp !== undefined) {
      requireTimeValues(input, timestamp);
      fields.push(new Field('timestamp', new Float64(), false));
    }
    return new Schema(fields);
  }

  get needs(): ValueNeeds {
    const { user, item, rating, timestamp } = this.columns;
    return {
      numbers: [rating, timestamp].filter((name) => name !== undefined),
      takesFaults: true,
      texts: [user, item],
      ids: [user, item],
    };
  }

  requiredColumns(): readonly string[] {
    return Object.values(this.columns).filter((name) => name !== undefined);
  }

  execute(input: BatchStream, ctx: ExecutionContext): BatchStream {
    const bad = new BadRowCounter();
    const selected = this.select(input, bad);
    const { badRows: policy } = this;
    return batchStream(
      selected.schema,
      (async function* () {
        yield* selected;
        reportBadRows(bad.found, policy, ctx);
      })(),
    );
  }

  /** The rows without bad ones, which `counter` counts. `areFinite`: true if all ratings are finite. */
  select(input: BatchStream, counter: BadRowCounter, areFinite: AreFinite = areAllFinite): BatchStream {
    const schema = this.#selectedSchema(input.schema);
    const names = this.requiredColumns();
    for (const name of names) fieldOf(input.schema, name);
    const selected = this.#select(input, schema, names, counter, areFinite);
    return batchStream(this.outputSchema(input.schema), selected);
  }

  async *#select(
    input: BatchStream,
    schema: Schema,
    names: readonly string[],
    counter: BadRowCounter,
    areFinite: AreFinite,
  ) {
    const output = this.outputSchema(input.schema);
    for await (const batch of input) {
      const raw = names.map((name) => columnOf(batch, name));
      for (const [i, data] of raw.entries()) if (i < 2) requireShortIds(batch, data, names[i]);
      const refused = new Map<number, string>();
      const columns = schema.fields.map((field, i) => toColumn(field, raw[i], names[i], refused));
      const bad = badRows(batch.numRows, raw, columns, refused, areFinite);
      const rating = schema.fields.findIndex(({ name }) => name === 'rating');
      if (rating >= 0)
        counter.addVanished(vanishedRatings(raw[rating], columns[rating].values as Float32Array));
      counter.add(
        batch,
        bad,
        (row) => refused.get(row) ?? placeOf(batch, row)?.fault ?? describeValues(names, raw, columns, row),
      );
      const kept = bad.length === 0 ? columns : withoutRows(columns, bad, batch.numRows);
      const rows = batch.numRows - bad.length;
      if (rows > 0)
        yield toBatch(output, this.#weighed(kept, schema), rows, bad.length === 0 ? batch : undefined);
    }
  }

  /** The columns with weights in place of ratings, and without times that no one needs further. */
  #weighed(columns: readonly Data[], { fields }: Schema): readonly Data[] {
    const { weighing } = this;
    if (weighing === undefined) return columns;
    const of = (role: string) => columns[fields.findIndex(({ name }) => name === role)];
    const times = of('timestamp').values as Float64Array;
    const weights = weighedByAge(of('rating').values as Float32Array, times, weighing);
    const replaced = makeData({ type: new Float32(), length: weights.length, data: weights });
    return columns
      .map((data, at) => (fields[at].name === 'rating' ? replaced : data))
      .filter((_, at) => weighing.keepsTimes || fields[at].name !== 'timestamp');
  }
}

/** Weights by age. `keepsTimes`: true if the column of times is still needed, for duplicates. */
export type SelectedWeighing = Weighing & { readonly keepsTimes: boolean };

/**
 * Converts a column; elements at nulls are undefined. `refused` receives the reason for each row whose id or
 * value cannot be converted exactly.
 */
function toColumn(field: Field, data: Data, name: string, refused: Map<number, string>): Data {
  const onRefused = (row: number, reason: string) =>
    void refused.set(row, refused.get(row) ?? `${name} ${reason}`);
  if (field.name === 'rating')
    return makeData({ type: new Float32(), length: data.length, data: ratingsOf(data, onRefused) });
  if (field.name === 'timestamp')
    return makeData({
      type: new Float64(),
      length: data.length,
      data: isText(data.type) ? timesOfTexts(data, onRefused) : numbersOf(data, Float64Array),
    });
  return keysToVector(keysFromData(data, keyTypeOf(data.type, name), onRefused)).data[0];
}

/** The ratings of a column as float32; undefined at nulls, and NaN for texts that `onRefused` gets. */
export function ratingsOf(data: Data, onRefused: OnRefusedText): Float32Array {
  return isText(data.type) || DataType.isBool(data.type)
    ? Float32Array.from(numbersOfTexts(data, onRefused))
    : numbersOf(data, Float32Array);
}

type AreFinite = (values: Float32Array) => boolean;

/** Values that are not finite. */
const OTHERS = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];

/**
 * True if all values are finite. V8's built-in search is used, since compiling a JavaScript loop would take
 * longer than running it.
 */
function areAllFinite(values: Float32Array): boolean {
  return !OTHERS.some((other) => values.includes(other));
}

/** Positions of bad rows, ascending. */
function badRows(
  rows: number,
  raw: readonly Data[],
  columns: readonly Data[],
  refused: ReadonlyMap<number, string>,
  areFinite: AreFinite,
): number[] {
  const nullable = raw.filter(hasNulls);
  const numbers = columns
    .filter((data) => data.values instanceof Float32Array)
    .map((data) => data.values as Float32Array);
  const bad: number[] = [];
  for (const values of numbers) {
    if (areFinite(values)) continue;
    for (let i = 0; i < rows; i++) if (!Number.isFinite(values[i])) bad.push(i);
  }
  for (const { values } of columns) {
    if (!(values instanceof Float64Array) || !OTHERS.some((other) => values.includes(other))) continue;
    for (let i = 0; i < rows; i++) if (!Number.isFinite(values[i])) bad.push(i);
  }
  if (nullable.length === 0 && refused.size === 0 && columns.length < 4) return bad;
  const seen = new Set([...bad, ...refused.keys()]);
  for (let i = 0; i < rows; i++) if (nullable.some((data) => isNullAt(data, i))) seen.add(i);
  return [...seen].sort((left, right) => left - right);
}

function withoutRows(columns: readonly Data[], bad: readonly number[], rows: number): Data[] {
  const keep = new Uint32Array(rows - bad.length);
  for (let i = 0, b = 0; i < rows; i++) {
    if (bad[b] === i) b++;
    else keep[i - b] = i;
  }
  return columns.map((data) => {
    const { values } = data;
    if (values instanceof Float32Array)
      return makeData({
        type: new Float32(),
        length: keep.length,
        data: Float32Array.from(keep, (i) => values[i]),
      });
    if (values instanceof Float64Array)
      return makeData({
        type: new Float64(),
        length: keep.length,
        data: Float64Array.from(keep, (i) => values[i]),
      });
    return keysToVector(takeKeys(keysFromData(data, keyTypeOf(data.type, 'id')), keep)).data[0];
  });
}

function toBatch(
  schema: Schema,
  columns: readonly Data[],
  length: number,
  whole: RecordBatch | undefined,
): RecordBatch {
  const batch = batchOf(schema, length, [...columns]);
  const origin = whole && originOf(whole);
  return origin ? setOrigin(batch, origin) : batch;
}

function describeValues(
  names: readonly string[],
  raw: readonly Data[],
  columns: readonly Data[],
  position: number,
): string {
  for (let i = 0; i < names.length; i++) {
    if (hasNulls(raw[i]) && isNullAt(raw[i], position)) return `${names[i]} is null`;
    const { values } = columns[i];
    const isNumber = values instanceof Float32Array || values instanceof Float64Array;
    if (!isNumber || Number.isFinite(values[position])) continue;
    const given = isText(raw[i].type)
      ? numbersOfTexts(raw[i])[position]
      : numbersOf(raw[i], Float64Array)[position];
    return `${names[i]} is ${given}${Number.isFinite(given) ? ', beyond float32' : ''}`;
  }
  return 'a value is missing';
}

/** Number of nonzero ratings that become 0 in float32, such as 1e-300. */
function vanishedRatings(given: Data, ratings: Float32Array): number {
  const mayVanish = isText(given.type) || (DataType.isFloat(given.type) && given.type.precision === 2);
  // Nearly all batches have no rating of 0, which V8's built-in search finds out fastest.
  if (!mayVanish || !ratings.includes(0)) return 0;
  const exact = isText(given.type) ? numbersOfTexts(given) : numbersOf(given, Float64Array);
  let vanished = 0;
  for (let row = 0; row < ratings.length; row++)
    if (ratings[row] === 0 && exact[row] !== 0 && !Number.isNaN(exact[row])) vanished++;
  return vanished;
}

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

type BadRow = {
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

/** Adds a column of ones, so that pairs without ratings become implicit data. */
export class Ones extends RowOperator {
  readonly name = 'ones';
  readonly passesNeeds = true;
  readonly column: string;
  /** Columns of numbers that could be the rating and are not used, for a warning. */
  readonly unused: readonly string[];

  constructor(column: string, unused: readonly string[] = []) {
    super([column, unused]);
    this.column = column;
    this.unused = unused;
  }

  describe(): JsonObject {
    return { column: this.column };
  }

  override outputSchema(input: Schema): Schema {
    return new Schema([...input.fields, new Field(this.column, new Float32(), false)]);
  }

  override requiredColumns(wanted?: readonly string[]): readonly string[] | undefined {
    return wanted?.filter((name) => name !== this.column);
  }

  protected async *batches(input: BatchStream, schema: Schema) {
    for await (const batch of input) {
      const { numRows, data } = batch;
      const values = new Float32Array(numRows).fill(1);
      const ones = makeData({ type: new Float32(), length: numRows, data: values });
      yield sameRows(batch, schema, [...data.children, ones]);
    }
  }
}
