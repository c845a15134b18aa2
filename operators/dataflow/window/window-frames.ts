import { type Data, DataType, DateUnit, Precision, TimeUnit } from 'apache-arrow';
import { numbersOf } from '../../../engine/expressions/values.ts';
import { readData } from '../../../engine/expressions/read.ts';

/** The distance of a frame's end from the current row; negative: before it. */
export type FrameEnd = number | 'unbounded';

/**
 * The rows that a function sees from each row. `rows` counts rows; `range` compares the only order key, in its
 * own unit (times: milliseconds). With `range`, 0 includes all rows with equal keys.
 */
export interface Frame {
  readonly unit: 'rows' | 'range';
  readonly from: FrameEnd;
  readonly to: FrameEnd;
}

/** Whole partitions in order: for each row, the bounds of its partition and of the rows with equal keys. */
export interface Partitions {
  readonly rows: number;
  readonly starts: Uint32Array;
  readonly ends: Uint32Array;
  readonly peerStarts: Uint32Array;
  readonly peerEnds: Uint32Array;
}

/** The first row of each row's frame, and the row after its last one. A frame is empty if lo >= hi. */
export interface FrameBounds {
  readonly lo: Uint32Array;
  readonly hi: Uint32Array;
}

/** The flags of rows that begin a partition (2), or rows with other keys (1). */
export function partitionsOf(flags: Uint8Array): Partitions {
  const [starts, ends] = runsOf(flags, 2);
  const [peerStarts, peerEnds] = runsOf(flags, 1);
  return { rows: flags.length, starts, ends, peerStarts, peerEnds };
}

function runsOf(flags: Uint8Array, least: number): [starts: Uint32Array, ends: Uint32Array] {
  const rows = flags.length;
  const [starts, ends] = [new Uint32Array(rows), new Uint32Array(rows)];
  for (let row = 0, start = 0; row < rows; row++) {
    if (flags[row] >= least) start = row;
    starts[row] = start;
  }
  for (let row = rows - 1, end = rows; row >= 0; row--) {
    ends[row] = end;
    if (flags[row] >= least) end = row;
  }
  return [starts, ends];
}

/** `key`: the column of the order key, for a range by values. Within a partition, lo and hi never decrease. */
export function boundsOf(frame: Frame, partitions: Partitions, key: OrderValues | undefined): FrameBounds {
  if (frame.unit === 'rows') return rowBounds(frame, partitions);
  if (isOfPeers(frame)) return peerBounds(frame, partitions);
  return rangeBounds(frame, partitions, key as OrderValues);
}

/** True if the frame is known from the rows with equal keys, without the distances of keys. */
export function isOfPeers({ from, to }: Frame): boolean {
  return [from, to].every((end) => end === 'unbounded' || end === 0);
}

function rowBounds({ from, to }: Frame, { rows, starts, ends }: Partitions): FrameBounds {
  const [lo, hi] = [starts.slice(), ends.slice()];
  for (let row = 0; row < rows; row++) {
    if (from !== 'unbounded') lo[row] = Math.min(ends[row], Math.max(starts[row], row + from));
    if (to !== 'unbounded') hi[row] = Math.max(starts[row], Math.min(ends[row], row + to + 1));
  }
  return { lo, hi };
}

function peerBounds({ from, to }: Frame, { starts, ends, peerStarts, peerEnds }: Partitions): FrameBounds {
  return { lo: from === 'unbounded' ? starts : peerStarts, hi: to === 'unbounded' ? ends : peerEnds };
}

/** The values of an order key as numbers that ascend in its order. */
export interface OrderValues {
  readonly values: Float64Array;
  /** 1 for nulls and NaN, which are at no distance from other values. */
  readonly apart: Uint8Array;
  /** Units of the values in a unit of the frame. */
  readonly scale: number;
  /** The value of the key's type that is nearest to an end of a frame. */
  readonly round: (value: number) => number;
}

function rangeBounds(frame: Frame, partitions: Partitions, key: OrderValues): FrameBounds {
  const { rows, starts, ends } = partitions;
  const { values, apart, scale, round } = key;
  const { lo, hi } = peerBounds(frame, partitions);
  const bounds = { lo: lo.slice(), hi: hi.slice() };
  for (let row = 0; row < rows;) {
    let [first, end] = [starts[row], ends[row]];
    row = end;
    while (first < end && apart[first] === 1) first++;
    while (end > first && apart[end - 1] === 1) end--;
    let [low, high] = [first, first];
    for (let own = first; own < end; own++) {
      if (frame.from !== 'unbounded') {
        const least = round(values[own] + round(frame.from * scale));
        while (low < end && values[low] < least) low++;
        bounds.lo[own] = low;
      }
      if (frame.to === 'unbounded') continue;
      const most = round(values[own] + round(frame.to * scale));
      while (high < end && values[high] <= most) high++;
      bounds.hi[own] = high;
    }
  }
  return bounds;
}

/** Reads an order key. Integers beyond 2^53 are distances from the first one, so that they keep their digits. */
export function orderValues(data: Data, descending: boolean): OrderValues {
  const values = numbersIn(data);
  const apart = new Uint8Array(values.length);
  for (let row = 0; row < values.length; row++) {
    if (Number.isNaN(values[row]) || (data.nullCount > 0 && !data.getValid(row))) apart[row] = 1;
    if (descending) values[row] = -values[row];
  }
  const isSingle = DataType.isFloat(data.type) && data.type.precision === Precision.SINGLE;
  const round = isSingle ? Math.fround : DataType.isDecimal(data.type) ? nearlyWhole : Number;
  return { values, apart, scale: unitsOf(data.type) ?? 1, round };
}

/** A distance of 0.29 is 29 hundredths, although 0.29 * 100 is 28.999999999999996. */
function nearlyWhole(value: number): number {
  const whole = Math.round(value);
  return Math.abs(value - whole) < 1e-6 ? whole : value;
}

function numbersIn(data: Data): Float64Array {
  const { type, values, length } = data;
  const isHalf = DataType.isFloat(type) && type.precision === Precision.HALF;
  if (isHalf || DataType.isDecimal(type)) {
    const column = readData(data);
    return column.form === 'big' ? distances(column.values) : numbersOf(column).slice();
  }
  const own = (values as Float64Array | BigInt64Array).subarray(0, length);
  const isLong = own instanceof BigInt64Array || own instanceof BigUint64Array;
  return isLong ? distances(own) : Float64Array.from(own);
}

function distances(values: ArrayLike<bigint>): Float64Array {
  const origin = values.length > 0 ? values[0] : 0n;
  return Float64Array.from(values, (value) => Number(value - origin));
}

const perMillisecond: Readonly<Record<TimeUnit, number>> = {
  [TimeUnit.SECOND]: 1e-3,
  [TimeUnit.MILLISECOND]: 1,
  [TimeUnit.MICROSECOND]: 1e3,
  [TimeUnit.NANOSECOND]: 1e6,
};

/** Units of a type's values in one unit of a frame; undefined if values have no distance. */
export function unitsOf(type: DataType): number | undefined {
  if (DataType.isInt(type) || DataType.isFloat(type)) return 1;
  if (DataType.isDecimal(type)) return 10 ** type.scale;
  if (DataType.isDate(type)) return type.unit === DateUnit.DAY ? 1 / 86_400_000 : 1;
  if (DataType.isTimestamp(type) || DataType.isTime(type) || DataType.isDuration(type))
    return perMillisecond[type.unit];
  return undefined;
}
