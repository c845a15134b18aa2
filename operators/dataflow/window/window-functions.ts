/** The window functions: each computes a column for the rows of whole partitions. */
import { Bool, type Data, type DataType, Float64, Int64 } from 'apache-arrow';
import { DataError } from '../../../engine/errors.ts';
import { readData } from '../../../engine/expressions/read.ts';
import { isInteger, isNumber, valueTypeOf } from '../../../engine/expressions/types.ts';
import { numbersOf, wideOf } from '../../../engine/expressions/values.ts';
import { bitsOf } from '../../../engine/expressions/write.ts';
import { hasNulls, isNullAt } from '../../../engine/keys/arrow-keys.ts';
import { compareRows, type KeyWords } from '../../../engine/sorting/sort-keys.ts';
import { takeData } from '../../../engine/stream/take-data.ts';
import { fixedData, numberData } from '../aggregate/accumulators.ts';
import { RangeSums } from './range-sums.ts';
import { type FrameBounds, orderValues, type Partitions, unitsOf } from './window-frames.ts';

/** The columns that a function reads. Each has one row more than the partitions: a null. */
export interface WindowInput extends Partitions {
  /** Column of the argument; empty for functions without one. */
  readonly value: Data;
  readonly frame: FrameBounds;
  /** The distance of `lag` and `lead`: rows, or a column of numbers. */
  readonly offset: number | Data;
  readonly ignoreNulls: boolean;
  /** The largest distance of a session's rows from the row before, in the frame's unit of `range`. */
  readonly gap: number;
  /** The argument's sort words: the largest value first, or the smallest; nulls last. */
  words(largestFirst: boolean): KeyWords;
}

export type WindowName =
  | 'rowNumber'
  | 'rank'
  | 'denseRank'
  | 'session'
  | 'lag'
  | 'lead'
  | 'lagInside'
  | 'leadInside'
  | 'first'
  | 'last'
  | 'min'
  | 'max'
  | 'count'
  | 'sum'
  | 'mean';

interface WindowFunction {
  /** The type of the result; undefined if it takes no values of the type. */
  readonly type: (value: DataType) => DataType | undefined;
  readonly compute: (input: WindowInput) => Data;
  /** True if the window must order its rows. */
  readonly needsOrder?: true;
  /** True for numbers that never fall from row to row, and depend on no later row with other keys. */
  readonly isRank?: true;
  /** True if it depends on the frame. */
  readonly isFramed?: true;
}

const sameType = (type: DataType) => type;
const int64 = () => new Int64();

export const windowFunctions: Readonly<Record<WindowName, WindowFunction>> = {
  rowNumber: ranking(
    ({ starts }) =>
      (row) =>
        row - starts[row] + 1,
  ),
  rank: ranking(
    ({ starts, peerStarts }) =>
      (row) =>
        peerStarts[row] - starts[row] + 1,
  ),
  denseRank: ranking(({ starts, peerStarts }) => {
    let rank = 0;
    return (row) => (rank = starts[row] === row ? 1 : rank + (peerStarts[row] === row ? 1 : 0));
  }),
  session: {
    type: (type) => (unitsOf(type) === undefined ? undefined : new Int64()),
    needsOrder: true,
    compute: numbered(({ starts, value, gap }) => {
      const { values, apart, scale } = orderValues(value, false);
      let session = 0;
      return (row) => {
        if (starts[row] === row) return (session = 1);
        const isGap = apart[row] + apart[row - 1] === 0 && values[row] - values[row - 1] > gap * scale;
        return (session += isGap ? 1 : 0);
      };
    }),
  },
  lag: shifted(-1),
  lead: shifted(1),
  lagInside: inside(-1),
  leadInside: inside(1),
  first: framed(
    ({ lo }) =>
      (row) =>
        lo[row],
  ),
  last: framed(
    ({ hi }) =>
      (row) =>
        hi[row] - 1,
  ),
  min: extreme(false),
  max: extreme(true),
  count: { type: int64, isFramed: true, compute: (input) => counts(input, validOf(input)) },
  sum: {
    type: (type) => sumOf(type, new Int64()),
    isFramed: true,
    compute: (input) =>
      isInteger(valueTypeOf(input.value.type)) ? integerSums(input) : floatSums(input, false),
  },
  mean: {
    type: (type) => sumOf(type, new Float64()),
    isFramed: true,
    compute: (input) => floatSums(input, true),
  },
};

function sumOf(type: DataType, ofIntegers: DataType): DataType | undefined {
  const own = valueTypeOf(type);
  if (isInteger(own)) return ofIntegers;
  return isNumber(own) ? new Float64() : undefined;
}

/** A function that gives the number of each row, called for one row after the other. */
function numbered(numberOf: (input: WindowInput) => (row: number) => number): WindowFunction['compute'] {
  return (input) => {
    const numbers = new Float64Array(input.rows);
    const numberAt = numberOf(input);
    for (let row = 0; row < numbers.length; row++) numbers[row] = numberAt(row);
    return numberData('int64', numbers, input.rows);
  };
}

function ranking(numberOf: (input: WindowInput) => (row: number) => number): WindowFunction {
  return { type: int64, needsOrder: true, isRank: true, compute: numbered(numberOf) };
}

/** A function that gives the row from which each row's value comes; negative for null. */
function picked(rowOf: (input: WindowInput) => (row: number) => number): WindowFunction['compute'] {
  return (input) => {
    const positions = new Uint32Array(input.rows);
    const rowAt = rowOf(input);
    for (let row = 0; row < positions.length; row++) {
      const found = rowAt(row);
      positions[row] = found < 0 ? input.rows : found;
    }
    return takeData(input.value, positions);
  };
}

function framed(rowOf: (frame: FrameBounds) => (row: number) => number): WindowFunction {
  const compute = picked(({ frame }) => {
    const rowAt = rowOf(frame);
    return (row) => (frame.lo[row] < frame.hi[row] ? rowAt(row) : OUTSIDE);
  });
  return { type: sameType, isFramed: true, compute };
}

const OUTSIDE = -1;
const NO_OFFSET = -2;

function shifted(sign: 1 | -1): WindowFunction {
  return { type: sameType, needsOrder: true, compute: picked((input) => shiftedRow(input, sign)) };
}

/** False for rows whose offset is outside the partition, which get the default. */
function inside(sign: 1 | -1): WindowFunction {
  const compute = (input: WindowInput) => {
    const rowAt = shiftedRow(input, sign);
    const flags = Uint8Array.from({ length: input.rows }, (_, row) => (rowAt(row) === OUTSIDE ? 0 : 1));
    return fixedData(new Bool(), bitsOf(flags), input.rows);
  };
  return { type: () => new Bool(), needsOrder: true, compute };
}

function shiftedRow(input: WindowInput, sign: 1 | -1): (row: number) => number {
  const { offset, starts, ends } = input;
  const present = input.ignoreNulls ? presentRows(input) : undefined;
  const column = typeof offset === 'number' ? undefined : readData(offset);
  const numbers = column && numbersOf(column);
  return (row) => {
    if (column?.valid?.[row] === 0) return NO_OFFSET;
    const distance = sign * (numbers ? numbers[row] : (offset as number));
    const found = present && distance !== 0 ? presentAt(present, row, distance) : row + distance;
    return found >= starts[row] && found < ends[row] ? found : OUTSIDE;
  };
}

interface PresentRows {
  /** The rows whose value is not null, ascending. */
  readonly found: Uint32Array;
  /** The number of them before each row. */
  readonly before: Uint32Array;
}

function presentRows(input: WindowInput): PresentRows {
  const before = countsBefore(validOf(input), input.rows);
  const found = new Uint32Array(before[input.rows]);
  for (let row = 0; row < input.rows; row++) if (before[row + 1] > before[row]) found[before[row]] = row;
  return { found, before };
}

function presentAt({ found, before }: PresentRows, row: number, distance: number): number {
  const at = distance < 0 ? before[row] + distance : before[row + 1] + distance - 1;
  return at >= 0 && at < found.length ? found[at] : OUTSIDE;
}

/** One byte a row, 0 for a null; undefined if no row is null, or there is no argument (`count()`). */
function validOf({ value, rows }: WindowInput): Uint8Array | undefined {
  if (value.length === 0 || !hasNulls(value)) return undefined;
  return Uint8Array.from({ length: rows }, (_, row) => (isNullAt(value, row) ? 0 : 1));
}

/** The number of valid rows before each row, and before the end. */
function countsBefore(valid: Uint8Array | undefined, rows: number): Uint32Array {
  const before = new Uint32Array(rows + 1);
  for (let row = 0; row < rows; row++) before[row + 1] = before[row] + (valid ? valid[row] : 1);
  return before;
}

function countsIn({ frame: { lo, hi }, rows }: WindowInput, valid: Uint8Array | undefined): Float64Array {
  const before = countsBefore(valid, rows);
  const found = new Float64Array(rows);
  for (let row = 0; row < rows; row++) found[row] = hi[row] > lo[row] ? before[hi[row]] - before[lo[row]] : 0;
  return found;
}

function counts(input: WindowInput, valid: Uint8Array | undefined): Data {
  return numberData('int64', countsIn(input, valid), input.rows);
}

/** The smallest or largest value of each frame, by a queue of the rows that a later row does not exceed. */
function extreme(largest: boolean): WindowFunction {
  const compute = picked((input) => {
    const { frame, starts } = input;
    const words = input.words(largest);
    const queue = new Uint32Array(input.rows);
    let [head, tail, next] = [0, 0, 0];
    return (row) => {
      if (starts[row] === row) [head, tail, next] = [0, 0, row];
      if (frame.lo[row] >= frame.hi[row]) return OUTSIDE;
      for (next = Math.max(next, frame.lo[row]); next < frame.hi[row]; next++) {
        while (tail > head && compareRows(words, next, words, queue[tail - 1]) < 0) tail--;
        queue[tail++] = next;
      }
      while (queue[head] < frame.lo[row]) head++;
      return queue[head];
    };
  });
  return { type: sameType, isFramed: true, compute };
}

function integerSums(input: WindowInput): Data {
  const { value, frame, rows } = input;
  const column = readData(value);
  const numbers = numbersOf(column);
  const valid = validOf(input);
  const found = countsIn(input, valid);
  const before = new Float64Array(rows + 1);
  let largest = 0;
  for (let row = 0; row < rows; row++) {
    before[row + 1] = before[row] + (valid?.[row] === 0 ? 0 : numbers[row]);
    largest = Math.max(largest, Math.abs(before[row + 1]), valid?.[row] === 0 ? 0 : Math.abs(numbers[row]));
  }
  const present = found.some((count) => count === 0) ? Uint8Array.from(found, Math.sign) : undefined;
  if (largest > Number.MAX_SAFE_INTEGER) return wideSums(input, wideOf(column), valid, present);
  const sums = new Float64Array(rows);
  for (let row = 0; row < rows; row++)
    if (found[row] > 0) sums[row] = before[frame.hi[row]] - before[frame.lo[row]];
  return numberData('int64', sums, rows, present);
}

function wideSums(
  { frame, rows }: WindowInput,
  values: BigInt64Array | BigUint64Array,
  valid: Uint8Array | undefined,
  present: Uint8Array | undefined,
): Data {
  const before = [0n];
  for (let row = 0; row < rows; row++) before.push(before[row] + (valid?.[row] === 0 ? 0n : values[row]));
  const sums = new BigInt64Array(rows);
  for (let row = 0; row < rows; row++) {
    if (present?.[row] === 0) continue;
    const sum = before[frame.hi[row]] - before[frame.lo[row]];
    if (BigInt.asIntN(64, sum) !== sum)
      throw new DataError(`a sum over a window is beyond int64: ${sum}`, {
        advice: 'Sum floats: cast the column to float64',
      });
    sums[row] = sum;
  }
  return fixedData(new Int64(), sums, rows, present);
}

/** Sums as float64, or with `isMean` divided by their counts; null for frames without a value. */
function floatSums(input: WindowInput, isMean: boolean): Data {
  const { value, frame, rows } = input;
  const valid = validOf(input);
  const found = countsIn(input, valid);
  const own = numbersOf(readData(value)).slice(0, rows);
  if (valid !== undefined) for (let row = 0; row < rows; row++) if (valid[row] === 0) own[row] = 0;
  const sums = new RangeSums(own);
  const results = new Float64Array(rows);
  for (let row = 0; row < rows; row++) {
    if (found[row] === 0) continue;
    const sum = sums.of(frame.lo[row], frame.hi[row]);
    results[row] = isMean ? sum / found[row] : sum;
  }
  const present = found.some((count) => count === 0) ? Uint8Array.from(found, Math.sign) : undefined;
  return numberData('float64', results, rows, present);
}
