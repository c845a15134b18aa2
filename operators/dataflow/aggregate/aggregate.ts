import {
  type Data,
  Field,
  Null,
  RecordBatch,
  Schema,
  type DataType,
  DataType as Types,
  DateUnit,
  Float64,
  Int32,
  Int64,
  Precision,
} from 'apache-arrow';
import { UsageError } from '../../../engine/errors.ts';
import { check, type Checked } from '../../../engine/expressions/check.ts';
import { columnsOf, type Expression } from '../../../engine/expressions/expression.ts';
import { print } from '../../../engine/expressions/print.ts';
import {
  arrowTypeOf,
  isDecimal,
  isInteger,
  isNumber,
  type ValueType,
  valueTypeOf,
} from '../../../engine/expressions/types.ts';
import type { JsonObject } from '../../../engine/json.ts';
import { RowNumbers } from '../../../engine/keys/row-numbers.ts';
import { isText } from '../../../engine/sorting/sort-texts.ts';
import { wordWriter } from '../../../engine/sorting/sort-words.ts';
import { plainData, plainType } from '../../../engine/stream/dictionary-values.ts';
import { joinData } from '../../../engine/stream/join-data.ts';
import type { BatchStream } from '../../../engine/stream/stream.ts';
import { takeData } from '../../../engine/stream/take-data.ts';
import { FewerRows, newGroups } from '../distinct-rows.ts';
import { batchOf, columnAt, RowOperator } from '../row-operator.ts';
import {
  type Accumulator,
  withRoom,
  Arguments,
  argumentType,
  pairType,
  MOST_COUNTED,
  RowCounts,
  Count,
  DecimalSums,
  Deviation,
  FloatSums,
  IntegerSums,
  Mean,
  Sum,
  sumType,
} from './accumulators.ts';
import {
  DistinctValues,
  ExtremeInteger,
  ExtremeNumber,
  ExtremeRow,
  First,
  FirstPresent,
  Last,
  Listed,
  listOf,
  Quantile,
  ValueBy,
} from './value-accumulators.ts';

/** A key of the result, and its position in the input. */
interface GroupKey {
  readonly index: number;
  readonly field: Field;
}

/** An aggregation over the columns of an input. */
interface AggregatedColumn {
  readonly form: AggregateForm;
  /** Argument of the aggregation. Absent in a final step, which reads states, and for counts of rows. */
  readonly checked?: Checked;
  /** The values by which `minBy` and `maxBy` choose a row. */
  readonly by?: Checked;
  /** Positions of its state columns. */
  readonly states: readonly number[];
}

/**
 * A grouping runs in one step ('whole') or in two, with an exchange of rows between them:
 *
 *     partial   rows -> states, for a part of the rows
 *     final     states -> results
 *     whole     rows -> results
 *
 * A state is the intermediate result of an aggregate, such as sum and count for a mean. States are columns
 * after the keys. Aggregates of several values, such as a median, have a list of values as their state. A list
 * of distinct values is never longer than the rows, and 'final' reads the states in the order of the rows.
 */
type AggregateStep = 'partial' | 'final' | 'whole';

export interface AggregateOptions {
  /** Names of columns. */
  readonly keys: readonly string[];
  readonly aggregations: readonly Aggregation[];
  readonly step: AggregateStep;
}

/**
 * Groups rows by key columns and aggregates each group: one output row for each distinct combination of key
 * values, in order of first occurrence. Without keys, steps 'final' and 'whole' return exactly one row, even
 * for empty input; a caller that divides the input must then run the step for one of the parts only. A
 * partial step whose groups turn out to be nearly as numerous as its rows stops grouping: it passes each
 * further row on as a group of its own.
 */
export class Aggregate extends RowOperator {
  readonly name = 'aggregate';
  readonly takesAllRows: boolean;
  readonly #options: AggregateOptions;

  constructor(options: AggregateOptions) {
    super([options]);
    this.#options = options;
    this.takesAllRows = options.step !== 'partial';
    const names = [...options.keys, ...options.aggregations.map(({ name }) => name)];
    const twice = names.find((name, i) => names.indexOf(name) < i);
    if (twice !== undefined)
      throw new UsageError(`the result would have the column "${twice}" twice`, {
        advice: "Name aggregates with as: sum(col('plays')).as('total')",
      });
  }

  /** Keys of a partial step. */
  get mergedBy(): readonly string[] | undefined {
    const { step, keys } = this.#options;
    return step === 'partial' ? keys : undefined;
  }

  describe(): JsonObject {
    const { keys, aggregations, step } = this.#options;
    const aggregates = aggregations.map((one) => `${aggregationText(one)} as ${one.name}`);
    return { step, keys: [...keys], aggregates };
  }

  override requiredColumns(): readonly string[] | undefined {
    const { keys, aggregations, step } = this.#options;
    if (step === 'final') return undefined;
    const values = aggregations.flatMap(({ value, by }) =>
      [value, by].flatMap((one) => (one === undefined ? [] : columnsOf(one))),
    );
    return [...new Set([...keys, ...values])];
  }

  override outputSchema(input: Schema): Schema {
    const { keys, columns } = this.#grouping(input);
    const fields = columns.flatMap(({ form }) =>
      this.#options.step === 'partial' ? form.states : [form.result],
    );
    return new Schema([...keys.map(({ field }) => field), ...fields]);
  }

  protected async *batches(input: BatchStream, schema: Schema) {
    const grouping: Grouping = { ...this.#grouping(input.schema), schema, numRows: input.numRows };
    const { keys, step } = grouping;
    const fewer = new FewerRows();
    let groups = new Groups(grouping);
    const mayGiveUp = step === 'partial' && keys.length > 0;
    for await (const whole of input) {
      for (let from = 0; from < whole.numRows;) {
        const left = whole.numRows - from;
        const rows: number = mayGiveUp ? fewer.next(left) : left;
        const batch = rows === whole.numRows ? whole : whole.slice(from, from + rows);
        from += rows;
        if (fewer.isGivenUp) {
          yield* new Groups(grouping).addEach(batch).batches();
          continue;
        }
        if (step === 'partial' && groups.rows + rows > MOST_COUNTED) {
          yield* groups.batches();
          groups = new Groups(grouping);
        }
        const before = groups.size;
        groups.add(batch);
        if (mayGiveUp) fewer.count(rows, groups.size - before);
        if (!fewer.isGivenUp) continue;
        yield* groups.batches();
        groups = new Groups(grouping);
      }
    }
    yield* groups.batches();
  }

  #grouping(input: Schema): Omit<Grouping, 'schema' | 'numRows'> {
    const { keys, step } = this.#options;
    const names = input.fields.map(({ name }) => name);
    const own = keys.map((name) => {
      const index = columnAt(name, names, 'to group by');
      const field = input.fields[index];
      return { index, field: field.clone({ type: plainType(field.type) }) };
    });
    return { keys: own, columns: step === 'final' ? this.#ofStates(input) : this.#ofRows(input), step };
  }

  #ofRows(input: Schema): Grouping['columns'] {
    return this.#options.aggregations.map((aggregation) => {
      const { value } = aggregation;
      if (value === undefined) return { form: formOf(aggregation, new Null()), states: [] };
      const checked = check(value, input);
      const metadata = checked.kind === 'column' ? input.fields[checked.index].metadata : undefined;
      const type = argumentType(checked, input);
      if (aggregation.by === undefined)
        return { form: formOf(aggregation, type, metadata), checked, states: [] };
      const by = check(aggregation.by, input);
      const both = pairType(argumentType(by, input), type);
      return { form: formOf(aggregation, both, metadata), checked, by, states: [] };
    });
  }

  #ofStates(input: Schema): Grouping['columns'] {
    let next = this.#options.keys.length;
    return this.#options.aggregations.map((aggregation) => {
      const form = formOfState(aggregation, input.fields[next]);
      const states = form.states.map((_, i) => next + i);
      next += states.length;
      return { form, states };
    });
  }
}

/** Most rows and bytes in a batch of the result. */
const BATCH_ROWS = 1 << 16;
const BATCH_BYTES = 4 << 20;

/** Keys and aggregations over the columns of an input, and the columns of the result. */
interface Grouping {
  readonly keys: readonly GroupKey[];
  readonly columns: readonly AggregatedColumn[];
  readonly step: AggregateStep;
  readonly schema: Schema;
  /** Rows of the input, if known. */
  readonly numRows: number | undefined;
}

/** 0, 1, 2, ... */
let ascending = new Uint32Array(0);

/** The groups of rows, with the accumulators of their aggregates. */
class Groups {
  readonly #grouping: Grouping;
  readonly #numbers: RowNumbers;
  readonly #accumulators: readonly Accumulator[];
  readonly #counts = new RowCounts();
  /** Group of each row in the current batch. */
  #codes = new Uint32Array(0);
  /** Keys of the groups, in chunks. */
  readonly #keys: Data[][];
  #size = 0;
  /** Number of added rows. */
  rows = 0;

  constructor(grouping: Grouping) {
    const { keys, columns, step, numRows } = grouping;
    this.#grouping = grouping;
    this.#numbers = new RowNumbers(
      keys.map(({ field }) => field),
      numRows,
    );
    this.#accumulators = columns.map(({ form }) => form.make(step === 'partial', this.#counts));
    this.#keys = keys.map(() => []);
  }

  get size(): number {
    return this.#size;
  }

  add(batch: RecordBatch): void {
    const { keys } = this.#grouping;
    const columns = keys.map(({ index }) => batch.data.children[index]);
    const before = this.#numbers.size;
    if (this.#codes.length < batch.numRows) this.#codes = new Uint32Array(batch.numRows);
    const codes = this.#codes.subarray(0, batch.numRows);
    this.#numbers.add(columns, batch.numRows, codes);
    this.#size = this.#numbers.size;
    if (this.#size > before) {
      const first = newGroups(codes, before, this.#size);
      columns.forEach((data, i) => this.#keys[i].push(plainData(takeData(data, first))));
    }
    this.#collect(batch, codes);
  }

  /** Adds a batch with each row as its own group. It must be the only batch. */
  addEach(batch: RecordBatch): this {
    if (ascending.length < batch.numRows)
      ascending = Uint32Array.from({ length: batch.numRows }, (_, i) => i);
    const codes = ascending.subarray(0, batch.numRows);
    this.#size = codes.length;
    this.#grouping.keys.forEach(({ index }, i) => this.#keys[i].push(plainData(batch.data.children[index])));
    this.#collect(batch, codes);
    return this;
  }

  #collect(batch: RecordBatch, codes: Uint32Array): void {
    const { columns, step, numRows } = this.#grouping;
    this.rows += batch.numRows;
    withRoom(2 * this.#size > this.rows ? numRows : undefined, () => {
      if (step !== 'final' && this.#counts.isWanted) this.#counts.add(codes, this.#size);
      const values = new Arguments(batch);
      for (const [i, { checked, by, states }] of columns.entries()) {
        const accumulator = this.#accumulators[i];
        if (step !== 'final') accumulator.add(values.of(checked, by), codes, this.#size);
        else
          accumulator.merge(
            states.map((at) => batch.data.children[at]),
            codes,
            this.#size,
          );
      }
    });
  }

  /** The result in batches. No rows can be added after it. */
  *batches(): Generator<RecordBatch> {
    const { columns, step, schema, keys } = this.#grouping;
    const isEmpty = this.#size === 0;
    // Without keys all rows are one group, even for an empty input.
    const groups = isEmpty && keys.length === 0 && step !== 'partial' ? 1 : this.#size;
    if (groups === 0) return;
    this.#numbers.giveBack();
    const results = this.#accumulators.flatMap((accumulator, i) => {
      if (step === 'partial') return accumulator.states(groups);
      return [accumulator.result(groups).clone(columns[i].form.result.type)];
    });
    const bytes = results.reduce((sum, { byteLength }) => sum + byteLength, 0);
    const rows = Math.min(BATCH_ROWS, Math.max(1, Math.floor((BATCH_BYTES / bytes) * groups)));
    const parts = this.#keys.map((chunks, i) => new Parts(keys[i].field.type, chunks));
    let from = 0;
    for (const length of lengthsOf(this.#keys[0]?.map((part) => part.length) ?? [groups], rows)) {
      const children = [
        ...parts.map((part) => part.next(length)),
        ...results.map((data) => (length === groups ? data : data.slice(from, length))),
      ];
      from += length;
      yield batchOf(schema, length, children);
    }
  }
}

/**
 * Cuts rows, stored in chunks of lengths `parts`, into batches of at most `most` rows; yields the length of
 * each batch. Chunks that fit are not cut, so that they need not be copied.
 */
function* lengthsOf(parts: readonly number[], most: number): Generator<number> {
  let rows = 0;
  for (const part of parts) {
    if (rows > 0 && rows + part > most) {
      yield rows;
      rows = 0;
    }
    for (rows += part; rows >= most; rows -= most) yield most;
  }
  if (rows > 0) yield rows;
}

/** A column in parts, read from its first row. */
class Parts {
  readonly #type: Data['type'];
  readonly #parts: readonly Data[];
  #part = 0;
  #row = 0;

  constructor(type: Data['type'], parts: readonly Data[]) {
    [this.#type, this.#parts] = [type, parts];
  }

  next(rows: number): Data {
    const taken: Data[] = [];
    for (let left = rows; left > 0;) {
      const part = this.#parts[this.#part];
      const length = Math.min(left, part.length - this.#row);
      taken.push(length === part.length ? part : part.slice(this.#row, length));
      left -= length;
      this.#row += length;
      if (this.#row < part.length) continue;
      this.#part++;
      this.#row = 0;
    }
    return joinData(this.#type, taken);
  }
}

export type AggregateName =
  | 'count'
  | 'countDistinct'
  | 'sum'
  | 'mean'
  | 'stddev'
  | 'min'
  | 'max'
  | 'first'
  | 'last'
  | 'firstPresent'
  | 'collectList'
  | 'collectSet'
  | 'median'
  | 'quantile'
  | 'minBy'
  | 'maxBy';

/** A named aggregate of a group's rows. `value` is absent for a `count` of rows. */
export interface Aggregation {
  readonly name: string;
  readonly call: AggregateName;
  readonly value?: Expression;
  /** `minBy` and `maxBy`: the expression that chooses the row. */
  readonly by?: Expression;
  /** `quantile`: from 0 to 1. */
  readonly p?: number;
}

/** An aggregate for values of one type: its columns, and how to make its accumulator. */
interface AggregateForm {
  /** Columns of a partial aggregation's states; their names start with the result's name. */
  readonly states: readonly Field[];
  readonly result: Field;
  /** `isPartial`: states will be requested. `rows`: row counts of the same groups. */
  make(isPartial: boolean, rows: RowCounts): Accumulator;
}

interface FormRequest {
  readonly name: string;
  readonly type: DataType;
  /** Metadata of the column that the values come from. */
  readonly metadata?: Field['metadata'];
  /** The aggregate as text. */
  readonly text: string;
  readonly p?: number;
}

interface AggregateFunction {
  /** Undefined if it does not accept values of the type. */
  form(request: FormRequest): AggregateForm | undefined;
  /** Finds the type of the values, or an equivalent type, from the first state column. */
  typeOf(state: Field): DataType;
}

const integerSums = ['low', 'high'];
const isSummedExactly = (type: ValueType) => isInteger(type) || type === 'null';

function sumFields(name: string, type: ValueType): Field[] {
  if (!isSummedExactly(type)) return [new Field(`${name}#sum`, sumType(type), true)];
  const [low, high] = integerSums;
  return [new Field(`${name}#${low}`, new Float64(), true), new Field(`${name}#${high}`, new Int32(), true)];
}

function sumsOf(type: ValueType, text: string) {
  const sum = sumType(type);
  if (Types.isDecimal(sum)) return new DecimalSums(text, sum);
  return isSummedExactly(type) ? new IntegerSums(text) : new FloatSums();
}

const summedType = ({ name, type }: Field): DataType =>
  name.endsWith(`#${integerSums[0]}`) ? new Int64() : type;

const isSummed = (type: ValueType) => isNumber(type) || type === 'null';

const ofNumbers = (
  make: (request: FormRequest, type: ValueType) => AggregateForm,
): AggregateFunction['form'] => {
  return (request) => {
    const type = valueTypeOf(request.type);
    return isSummed(type) ? make(request, type) : undefined;
  };
};

/** An aggregate whose result is also its only state. */
function oneColumn(result: Field, make: () => Accumulator): AggregateForm {
  return { states: [result], result, make };
}

const extreme = (takesLargest: boolean): AggregateFunction => ({
  typeOf: ({ type }) => type,
  form({ name, type }) {
    const make = extremeOf(takesLargest, type);
    return make && oneColumn(new Field(name, type, true), make);
  },
});

function extremeOf(takesLargest: boolean, type: DataType): (() => Accumulator) | undefined {
  if (isLong(type)) {
    const isUnsigned = Types.isInt(type) && !type.isSigned;
    return () => new ExtremeInteger(takesLargest, type, isUnsigned);
  }
  const number = numberOf(type);
  if (number !== undefined) return () => new ExtremeNumber(takesLargest, type, number);
  if (Types.isNull(type)) return () => new First(type);
  const isOrdered = isText(type) || wordWriter(type) !== undefined;
  return isOrdered ? () => new ExtremeRow(takesLargest, type) : undefined;
}

/** True for types that are ordered as 64-bit integers. */
function isLong(type: DataType): boolean {
  if (Types.isInt(type) || Types.isTime(type)) return type.bitWidth === 64;
  if (Types.isDate(type)) return type.unit === DateUnit.MILLISECOND;
  return Types.isTimestamp(type) || Types.isDuration(type);
}

/** The type to read values as, if they are exact in float64 in the same unit. */
function numberOf(type: DataType): ValueType | undefined {
  const isHalf = Types.isFloat(type) && type.precision === Precision.HALF;
  const isPlain = Types.isInt(type) || Types.isDate(type) || (Types.isFloat(type) && !isHalf);
  return isPlain ? valueTypeOf(type) : undefined;
}

const picked = (Kind: typeof First | typeof FirstPresent | typeof Last): AggregateFunction => ({
  typeOf: ({ type }) => type,
  form: ({ name, type, metadata }) => oneColumn(new Field(name, type, true, metadata), () => new Kind(type)),
});

const itemType = ({ type }: Field): DataType => (Types.isList(type) ? type.children[0].type : type);

const pickedBy = (takesLargest: boolean): AggregateFunction => ({
  typeOf: ({ type }) => type,
  form({ name, type, metadata }) {
    const [by, value] = type.children;
    if (extremeOf(takesLargest, by.type) === undefined) return undefined;
    return {
      states: [new Field(`${name}#row`, type, true, metadata)],
      result: new Field(name, value.type, true, metadata),
      make: () => new ValueBy(takesLargest, type),
    };
  },
});

const quantiles: AggregateFunction = {
  typeOf: itemType,
  form: ofNumbers(({ name, p = 0.5 }, valueType) => {
    const type = isDecimal(valueType) ? arrowTypeOf(valueType) : new Float64();
    return {
      states: [new Field(`${name}#values`, listOf(type), false)],
      result: new Field(name, type, true),
      make: () => new Quantile(p, type),
    };
  }),
};

const countField = (name: string) => new Field(name, new Int32(), false);

const functions: Readonly<Record<AggregateName, AggregateFunction>> = {
  count: {
    typeOf: () => new Null(),
    form: ({ name }) => ({
      states: [countField(name)],
      result: new Field(name, new Int64(), false),
      make: (_, rows) => new Count(rows),
    }),
  },
  countDistinct: {
    typeOf: itemType,
    form: ({ name, type, text }) => ({
      states: [new Field(`${name}#values`, listOf(type), false)],
      result: new Field(name, new Int64(), false),
      make: (isPartial) => new DistinctValues({ text, type, isPartial, isList: false }),
    }),
  },
  sum: {
    typeOf: summedType,
    form: ofNumbers(({ name, text }, type) => ({
      states: sumFields(name, type),
      result: new Field(name, sumType(type), true),
      make: () => new Sum(sumsOf(type, text)),
    })),
  },
  mean: {
    typeOf: summedType,
    form: ofNumbers(({ name, text }, type) => ({
      states: [...sumFields(name, type), countField(`${name}#count`)],
      result: new Field(name, new Float64(), true),
      make: (_, rows) => new Mean(sumsOf(type, text), rows),
    })),
  },
  stddev: {
    typeOf: () => new Float64(),
    form: ofNumbers(({ name }) => ({
      states: [
        new Field(`${name}#count`, new Int64(), false),
        new Field(`${name}#mean`, new Float64(), false),
        new Field(`${name}#squares`, new Float64(), false),
      ],
      result: new Field(name, new Float64(), true),
      make: () => new Deviation(),
    })),
  },
  min: extreme(false),
  max: extreme(true),
  first: picked(First),
  last: picked(Last),
  firstPresent: picked(FirstPresent),
  collectList: {
    typeOf: itemType,
    form: ({ name, type }) => oneColumn(new Field(name, listOf(type), false), () => new Listed(type)),
  },
  collectSet: {
    typeOf: itemType,
    form: ({ name, type, text }) => ({
      states: [new Field(name, listOf(type), false)],
      result: new Field(name, listOf(type), false),
      make: (isPartial) => new DistinctValues({ text, type, isPartial, isList: true }),
    }),
  },
  median: quantiles,
  quantile: quantiles,
  minBy: pickedBy(false),
  maxBy: pickedBy(true),
};

/** The form of an aggregation for values of a type. Throws UsageError if it does not accept them. */
function formOf(aggregation: Aggregation, type: DataType, metadata?: Field['metadata']): AggregateForm {
  const { name, call, by, p } = aggregation;
  const text = aggregationText(aggregation);
  const form = functions[call].form({ name, type, metadata, text, ...(p !== undefined && { p }) });
  if (form !== undefined) return form;
  const refused = by === undefined ? type : type.children[0].type;
  throw new UsageError(`${call} takes no values of type ${refused}: ${text}`, {
    ...(isText(type) && { advice: 'Cast the column to a number' }),
  });
}

/** The form of an aggregation, from its first state column. */
function formOfState(aggregation: Aggregation, state: Field): AggregateForm {
  const { typeOf } = functions[aggregation.call];
  return formOf(aggregation, typeOf(state), state.metadata);
}

/** An aggregate as text, without its name. */
export function aggregationText({ call, value, by, p }: Omit<Aggregation, 'name'>): string {
  const further = [...(by === undefined ? [] : [print(by)]), ...(p === undefined ? [] : [`${p}`])];
  return `${call}(${[value === undefined ? '*' : print(value), ...further].join(', ')})`;
}
