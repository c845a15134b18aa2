import {
  type DataType,
  DataType as Types,
  DateUnit,
  Field,
  Float64,
  Int32,
  Int64,
  Null,
  Precision,
} from 'apache-arrow';
import { UsageError } from '../../../engine/errors.ts';
import type { Expression } from '../../../engine/expressions/expression.ts';
import { print } from '../../../engine/expressions/print.ts';
import {
  isFloat,
  isInteger,
  isNumber,
  type ValueType,
  valueTypeOf,
} from '../../../engine/expressions/types.ts';
import type { JsonObject } from '../../../engine/json.ts';
import { isText } from '../../../engine/sorting/sort-texts.ts';
import { wordWriter } from '../../../engine/sorting/sort-words.ts';
import {
  type Accumulator,
  Count,
  Deviation,
  FloatSums,
  IntegerSums,
  Mean,
  type RowCounts,
  Sum,
} from './accumulate-numbers.ts';
import {
  CountDistinct,
  ExtremeInteger,
  ExtremeNumber,
  ExtremeRow,
  First,
  Last,
  Listed,
  listOf,
} from './accumulate-values.ts';

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
  | 'collectList';

/** A named aggregate of a group's rows. `value` is absent for a `count` of rows. */
export interface Aggregation {
  readonly name: string;
  readonly call: AggregateName;
  readonly value?: Expression;
}

/** An aggregate for values of one type: its columns, and how to make its accumulator. */
export interface AggregateForm {
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
  if (!isSummedExactly(type)) return [new Field(`${name}#sum`, new Float64(), true)];
  const [low, high] = integerSums;
  return [new Field(`${name}#${low}`, new Float64(), true), new Field(`${name}#${high}`, new Int32(), true)];
}

const sumsOf = (type: ValueType, text: string) =>
  isSummedExactly(type) ? new IntegerSums(text) : new FloatSums();

const summedType = ({ name }: Field): DataType =>
  name.endsWith(`#${integerSums[0]}`) ? new Int64() : new Float64();

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

const picked = (Kind: typeof First | typeof Last): AggregateFunction => ({
  typeOf: ({ type }) => type,
  form: ({ name, type, metadata }) => oneColumn(new Field(name, type, true, metadata), () => new Kind(type)),
});

const itemType = ({ type }: Field): DataType => (Types.isList(type) ? type.children[0].type : type);

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
      make: (isPartial) => new CountDistinct(text, type, isPartial),
    }),
  },
  sum: {
    typeOf: summedType,
    form: ofNumbers(({ name, text }, type) => ({
      states: sumFields(name, type),
      result: new Field(name, isFloat(type) ? new Float64() : new Int64(), true),
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
  collectList: {
    typeOf: itemType,
    form: ({ name, type }) => oneColumn(new Field(name, listOf(type), false), () => new Listed(type)),
  },
};

/** The form of an aggregation for values of a type. Throws UsageError if it does not accept them. */
export function formOf(
  aggregation: Aggregation,
  type: DataType,
  metadata?: Field['metadata'],
): AggregateForm {
  const { name, call } = aggregation;
  const text = aggregationText(aggregation);
  const form = functions[call].form({ name, type, metadata, text });
  if (form !== undefined) return form;
  throw new UsageError(`${call} takes no values of type ${type}: ${text}`, {
    ...(isText(type) && { advice: 'Cast the column to a number' }),
  });
}

/** The form of an aggregation, from its first state column. */
export function formOfState(aggregation: Aggregation, state: Field): AggregateForm {
  const { typeOf } = functions[aggregation.call];
  return formOf(aggregation, typeOf(state), state.metadata);
}

/** An aggregate as text, without its name. */
export function aggregationText({ call, value }: Pick<Aggregation, 'call' | 'value'>): string {
  return `${call}(${value === undefined ? '*' : print(value)})`;
}

export function aggregationJson({ name, call, value }: Aggregation): JsonObject {
  return { name, call, ...(value && { value: value as unknown as JsonObject }) };
}
