/** The window functions: each computes a column for the rows of whole partitions. */
import { Bool, type Data, type DataType, Float64, Int64 } from 'apache-arrow';
import { DataError } from '../../../engine/errors.ts';
import { decimalMean } from '../../../engine/expressions/decimals.ts';
import { readData } from '../../../engine/expressions/read.ts';
import {
  isDecimal,
  isFloat,
  isNumber,
  rangeOf,
  scaleOf,
  valueTypeOf,
} from '../../../engine/expressions/types.ts';
import { bigsOf, decimals, integers, numbersOf, type Values } from '../../../engine/expressions/values.ts';
import { bitsOf, writeData } from '../../../engine/expressions/write.ts';
import { decimalText, hasNulls, isNullAt } from '../../../engine/keys/arrow-keys.ts';
import { compareRows, hasOrder, type KeyWords } from '../../../engine/sorting/sort-keys.ts';
import { joinData } from '../../../engine/stream/join-data.ts';
import { takeData } from '../../../engine/stream/take-data.ts';
import { fixedData, numberData, sumType } from '../aggregate/accumulators.ts';
import { RangeSums } from './range-sums.ts';
import { type Frame, type FrameBounds, orderValues, type Partitions, unitsOf } from './window-frames.ts';

/** The columns that a function reads. Each has one row more than the partitions: a null. */
export interface WindowInput extends Partitions {
  /** The rows whose values are computed, [from, to). Those before have theirs. */
  readonly from: number;
  readonly to: number;
  /** True if further rows of the last partition follow. */
  readonly continues: boolean;
  /** Changed by `compute`, so that it can go on with the rows that follow. */
  readonly state: WindowState;
  /** Column of the argument; empty for functions without one. */
  readonly value: Data;
  readonly spec: Frame;
  readonly frame: FrameBounds;
  /** The distance of `lag` and `lead`: rows, or a column of numbers. */
  readonly offset: number | Data;
  readonly ignoreNulls: boolean;
  /** The largest distance of a session's rows from the row before, in the frame's unit of `range`. */
  readonly gap: number;
  /** The sort words of the argument's column: the largest value first, or the smallest; nulls last. */
  words(column: Data, largestFirst: boolean): KeyWords;
}

/** What a function knows of the rows of its partition before row `from`. */
export interface WindowState {
  /** The last row's number in its partition, and its rank or session. */
  number: number;
  rank: number;
  /** For frames that begin where the partition does: the row after those that are counted and added below. */
  at: number;
  count: number;
  sum: number;
  exact: bigint;
  /** The chosen value, of one row. */
  value?: Data;
}

export function newState(): WindowState {
  return { number: 0, rank: 0, at: 0, count: 0, sum: 0, exact: 0n };
}

/** The state after the first `rows` rows are no longer held. */
export function shiftState(state: WindowState, rows: number): WindowState {
  return { ...state, at: state.at - rows };
}

/** How far values depend on other rows. */
interface Reach {
  /** In an unfinished partition: the first row whose value depends on rows that follow. */
  known(input: WindowInput): number;
  /** The first row on which the values from `row` on depend, besides the state. */
  needed(input: WindowInput, row: number): number;
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
  /** The values of the rows [from, to). */
  readonly compute: (input: WindowInput) => Data;
  /** True if the window must order its rows. */
  readonly needsOrder?: true;
  /** True for numbers that never fall from row to row, and depend on no later row with other keys. */
  readonly isRank?: true;
  /** True if it depends on the frame. */
  readonly isFramed?: true;
  /** Default: by the frame if it depends on one, else the row before. */
  readonly reach?: Reach;
}

export function reachOf(call: WindowName): Reach {
  const { reach, isFramed } = windowFunctions[call];
  return reach ?? (isFramed ? ofFrame : ofRowBefore);
}

const ofRowBefore: Reach = { known: ({ rows }) => rows, needed: (_, row) => row };

const ofFrame: Reach = {
  known({ rows, frame: { hi }, spec: { unit, to } }) {
    if (to === 'unbounded') return 0;
    if (unit === 'rows') return Math.max(0, rows - Math.max(0, to));
    let row = rows;
    while (row > 0 && hi[row - 1] === rows) row--;
    return row;
  },
  needed({ rows, frame: { lo, hi }, spec: { unit, from } }, row) {
    if (from === 'unbounded') return Math.min(row, row > 0 ? hi[row - 1] : 0) - 1;
    return unit === 'rows' ? row + Math.min(0, from) : Math.min(row, lo[Math.min(row, rows - 1)]);
  },
};

const sameType = (type: DataType) => type;
const orderedType = (type: DataType) => (hasOrder(type) ? type : undefined);
const int64 = () => new Int64();

export const windowFunctions: Readonly<Record<WindowName, WindowFunction>> = {
  rowNumber: ranking(
    ({ starts, state }) =>
      (row) =>
        (state.number = starts[row] === row ? 1 : state.number + 1),
  ),
  rank: ranking(({ starts, peerStarts, state }) => (row) => {
    state.number = starts[row] === row ? 1 : state.number + 1;
    return peerStarts[row] === row ? (state.rank = state.number) : state.rank;
  }),
  denseRank: ranking(({ starts, peerStarts, state }) => (row) => {
    const own = peerStarts[row] === row ? 1 : 0;
    return (state.rank = starts[row] === row ? 1 : state.rank + own);
  }),
  session: {
    type: (type) => (unitsOf(type) === undefined ? undefined : new Int64()),
    needsOrder: true,
    compute: numbered(({ starts, value, gap, state }) => {
      const { values, apart, scale, round } = orderValues(value, false);
      const most = round(gap * scale);
      return (row) => {
        if (starts[row] === row) return (state.rank = 1);
        const isGap = apart[row] + apart[row - 1] === 0 && values[row] - values[row - 1] > most;
        return (state.rank += isGap ? 1 : 0);
      };
    }),
  },
  lag: shifted(-1),
  lead: shifted(1),
  lagInside: inside(-1),
  leadInside: inside(1),
  first: { type: sameType, isFramed: true, compute: firstValues },
  last: {
    type: sameType,
    isFramed: true,
    compute: picked(
      ({ frame: { lo, hi } }) =>
        (row) =>
          lo[row] < hi[row] ? hi[row] - 1 : OUTSIDE,
    ),
  },
  min: { type: orderedType, isFramed: true, compute: (input) => extremes(input, false) },
  max: { type: orderedType, isFramed: true, compute: (input) => extremes(input, true) },
  count: { type: int64, isFramed: true, compute: (input) => counts(input, validOf(input)) },
  sum: {
    type: (type) => (isNumber(valueTypeOf(type)) ? sumType(valueTypeOf(type)) : undefined),
    isFramed: true,
    compute: (input) =>
      isFloat(valueTypeOf(input.value.type)) ? floatSums(input, false) : dataOf(exactSums(input).sums),
  },
  mean: {
    type: (type) => (isNumber(valueTypeOf(type)) ? new Float64() : undefined),
    isFramed: true,
    compute: (input) =>
      isDecimal(valueTypeOf(input.value.type)) ? decimalMeans(input) : floatSums(input, true),
  },
};

/** A function that gives the number of each row, called for one row after the other. */
function numbered(numberOf: (input: WindowInput) => (row: number) => number): WindowFunction['compute'] {
  return (input) => {
    const { from, to } = input;
    const numbers = new Float64Array(to - from);
    const numberAt = numberOf(input);
    for (let row = from; row < to; row++) numbers[row - from] = numberAt(row);
    return numberData('int64', numbers, numbers.length);
  };
}

function ranking(numberOf: (input: WindowInput) => (row: number) => number): WindowFunction {
  return { type: int64, needsOrder: true, isRank: true, compute: numbered(numberOf) };
}

/** A function that gives the row from which each row's value comes; negative for null. */
function picked(rowOf: (input: WindowInput) => (row: number) => number): WindowFunction['compute'] {
  return (input) => takeData(input.value, positionsOf(input, rowOf(input)));
}

function positionsOf({ from, to, rows }: WindowInput, rowAt: (row: number) => number): Uint32Array {
  const positions = new Uint32Array(to - from);
  for (let row = from; row < to; row++) {
    const found = rowAt(row);
    positions[row - from] = found < 0 ? rows : found;
  }
  return positions;
}

const OUTSIDE = -1;
const NO_OFFSET = -2;

/** True if the frames begin where their partitions do, so that they only grow. */
function isGrowing({ spec }: WindowInput): boolean {
  return spec.from === 'unbounded';
}

/** True for a row of a partition whose first rows are no longer held, if its frame began with them. */
function isCarried(input: WindowInput, row: number): boolean {
  return input.from > 0 && input.starts[row] === 0 && isGrowing(input);
}

/** The column of the argument, and the value of the state in the row after its null. */
function withChosen({ value, state }: WindowInput): Data {
  return state.value === undefined ? value : joinData(value.type, [value, state.value]);
}

/** Keeps a value of the column for the rows that follow. */
function choose({ state, continues, rows }: WindowInput, column: Data, row: number): void {
  if (continues) state.value = takeData(column, Uint32Array.of(row < 0 ? rows : row));
}

function firstValues(input: WindowInput): Data {
  const { frame, rows, starts, to } = input;
  const column = withChosen(input);
  const firstOf = (row: number) => (isCarried(input, row) ? rows + 1 : frame.lo[row]);
  const rowAt = (row: number) => (frame.lo[row] < frame.hi[row] ? firstOf(row) : OUTSIDE);
  const values = takeData(column, positionsOf(input, rowAt));
  if (isGrowing(input)) choose(input, column, isCarried(input, to - 1) ? rows + 1 : starts[to - 1]);
  return values;
}

function shifted(sign: 1 | -1): WindowFunction {
  const compute = picked((input) => shiftedRow(input, sign));
  return { type: sameType, needsOrder: true, compute, reach: reachOfShift(sign) };
}

function reachOfShift(sign: 1 | -1): Reach {
  return {
    known({ offset, ignoreNulls, rows }) {
      const distance = typeof offset === 'number' ? sign * offset : Number.POSITIVE_INFINITY;
      if (distance <= 0) return rows;
      return ignoreNulls ? 0 : Math.max(0, rows - distance);
    },
    needed(input, row) {
      const distance = typeof input.offset === 'number' ? sign * input.offset : 0;
      if (distance >= 0) return row;
      return input.ignoreNulls ? presentAt(presentRows(input), row, distance) : row + distance;
    },
  };
}

/** False for rows whose offset is outside the partition, which get the default. */
function inside(sign: 1 | -1): WindowFunction {
  const compute = (input: WindowInput) => {
    const rowAt = shiftedRow(input, sign);
    const { from, to } = input;
    const flags = Uint8Array.from({ length: to - from }, (_, i) => (rowAt(from + i) === OUTSIDE ? 0 : 1));
    return fixedData(new Bool(), bitsOf(flags), flags.length);
  };
  return { type: () => new Bool(), needsOrder: true, compute, reach: reachOfShift(sign) };
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

/** The number of valid rows in the frame of each row [from, to). */
function countsIn(input: WindowInput, valid: Uint8Array | undefined): Float64Array {
  const { frame, rows, from, to, state } = input;
  const before = countsBefore(valid, rows);
  const found = new Float64Array(to - from);
  for (let row = from; row < to; row++) {
    const [lo, hi] = [frame.lo[row], frame.hi[row]];
    if (hi <= lo) continue;
    const own = isCarried(input, row) ? state.count - before[state.at] : -before[lo];
    found[row - from] = before[hi] + own;
  }
  return found;
}

/** Records what the frame of the last row has, for the rows that follow. */
function keepFrame({ state, frame, to }: WindowInput, found: Float64Array): void {
  [state.at, state.count] = [frame.hi[to - 1], found[found.length - 1]];
}

function counts(input: WindowInput, valid: Uint8Array | undefined): Data {
  const found = countsIn(input, valid);
  keepFrame(input, found);
  return numberData('int64', found, found.length);
}

/** The smallest or largest value of each frame. */
function extremes(input: WindowInput, largest: boolean): Data {
  const column = withChosen(input);
  const words = input.words(column, largest);
  if (!isGrowing(input)) return takeData(column, positionsOf(input, extremeRow(input, words)));
  const { frame, rows, starts, state, to } = input;
  let best = state.value === undefined ? OUTSIDE : rows + 1;
  const positions = positionsOf(input, (row) => {
    if (starts[row] === row) [best, state.at] = [OUTSIDE, row];
    for (; state.at < frame.hi[row]; state.at++)
      if (best === OUTSIDE || compareRows(words, state.at, words, best) < 0) best = state.at;
    return frame.lo[row] < frame.hi[row] ? best : OUTSIDE;
  });
  const values = takeData(column, positions);
  if (frame.lo[to - 1] < frame.hi[to - 1]) choose(input, column, best);
  return values;
}

/** By a queue of the rows that no later row exceeds. */
function extremeRow({ frame, starts, rows }: WindowInput, words: KeyWords): (row: number) => number {
  const queue = new Uint32Array(rows);
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
}

const dataOf = (sums: Values) => writeData(sums, sums.length);

function decimalMeans(input: WindowInput): Data {
  const { sums, counts: found } = exactSums(input);
  const values = sums.form === 'number' || sums.form === 'big' ? sums.values : [];
  const means = found.map((count, i) => (count > 0 ? decimalMean(values[i], count, scaleOf(sums.type)) : 0));
  return numberData('float64', means, means.length, sums.valid);
}

/** Sums of integers and decimals, and the numbers of values in them. */
function exactSums(input: WindowInput): { readonly sums: Values; readonly counts: Float64Array } {
  const { value, frame, rows, from, to, state } = input;
  const column = readData(value);
  const numbers = numbersOf(column);
  const valid = validOf(input);
  const found = countsIn(input, valid);
  const before = new Float64Array(rows + 1);
  const carried = Number(state.exact);
  let largest = Math.abs(carried);
  for (let row = 0; row < rows; row++) {
    before[row + 1] = before[row] + (valid?.[row] === 0 ? 0 : numbers[row]);
    largest = Math.max(largest, Math.abs(before[row + 1]), valid?.[row] === 0 ? 0 : Math.abs(numbers[row]));
  }
  const type = valueTypeOf(sumType(column.type));
  const shape = { type, length: to - from, valid: presentOf(found), constant: false };
  if (4 * largest > Number.MAX_SAFE_INTEGER)
    return { sums: wideSums(input, bigsOf(column), found, shape), counts: found };
  const values = new Float64Array(to - from);
  for (let row = from; row < to; row++) {
    if (found[row - from] === 0) continue;
    const own = isCarried(input, row) ? carried - before[state.at] : -before[frame.lo[row]];
    values[row - from] = before[frame.hi[row]] + own;
  }
  keepFrame(input, found);
  state.exact = BigInt(values[values.length - 1]);
  return { sums: { form: 'number', values, ...shape }, counts: found };
}

function presentOf(found: Float64Array): Uint8Array | undefined {
  return found.includes(0) ? Uint8Array.from(found, Math.sign) : undefined;
}

function wideSums(
  input: WindowInput,
  values: ArrayLike<bigint>,
  found: Float64Array,
  shape: Pick<Values, 'type' | 'valid' | 'constant'>,
): Values {
  const { frame, rows, from, state } = input;
  const valid = validOf(input);
  const before = [0n];
  for (let row = 0; row < rows; row++) before.push(before[row] + (valid?.[row] === 0 ? 0n : values[row]));
  const [least, most] = rangeOf(shape.type);
  const sums = Array.from(found, (count, i) => {
    if (count === 0) return 0n;
    const row = from + i;
    const own = isCarried(input, row) ? state.exact - before[state.at] : -before[frame.lo[row]];
    const sum = before[frame.hi[row]] + own;
    if (sum >= least && sum <= most) return sum;
    throw new DataError(
      `a sum over a window is beyond ${shape.type}: ${decimalText(sum, scaleOf(shape.type))}`,
      {
        advice: 'Sum floats: cast the column to float64',
      },
    );
  });
  keepFrame(input, found);
  state.exact = sums[sums.length - 1];
  return isDecimal(shape.type) ? decimals(sums, shape) : integers(BigInt64Array.from(sums), shape);
}

/** Sums as float64, or with `isMean` divided by their counts; null for frames without a value. */
function floatSums(input: WindowInput, isMean: boolean): Data {
  const { value, frame, rows, from, to, state } = input;
  const valid = validOf(input);
  const found = countsIn(input, valid);
  const own = numbersOf(readData(value)).slice(0, rows);
  if (valid !== undefined) for (let row = 0; row < rows; row++) if (valid[row] === 0) own[row] = 0;
  const known = isCarried(input, from) ? { hi: state.at, sum: state.sum } : undefined;
  const sums = new RangeSums(own, isGrowing(input), known);
  const results = new Float64Array(to - from);
  for (let row = from; row < to; row++) {
    const sum = sums.of(frame.lo[row], frame.hi[row]);
    results[row - from] = isMean ? sum / found[row - from] : sum;
  }
  keepFrame(input, found);
  state.sum = sums.sum;
  return numberData('float64', results, results.length, presentOf(found));
}
