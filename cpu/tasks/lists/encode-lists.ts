import { fallingOrder } from '../../../engine/numbers/falling-order.ts';
import type { TaskHandler, TaskScope } from '../../handler.ts';
import { toBytes } from '../search/search.ts';
import { vectorReader, rotation } from './list-vectors.ts';

const ROUND_UP = 1 + 1e-6;
const NO_ITEM = 0xffff_ffff;

export const averageLists: TaskHandler<'average-lists'> = (scope) => {
  const { from, to, rank } = scope.params;
  const [members, offsets] = ['members', 'offsets'].map((name) => column<Uint32Array>(scope, name));
  const means = column<Float32Array>(scope, 'means');
  const read = vectorReader(column<Float32Array>(scope, 'vectors'), scope.params);
  const vector = new Float32Array(rank);
  const sums = new Float64Array(rank);
  for (let list = from; list < to && !scope.cancelled(); list++) {
    const count = offsets[list + 1] - offsets[list];
    if (count === 0) continue;
    sums.fill(0);
    for (let at = offsets[list]; at < offsets[list + 1]; at++) {
      read(members[at], vector, 0);
      for (let k = 0; k < rank; k++) sums[k] += vector[k];
    }
    for (let k = 0; k < rank; k++) means[list * rank + k] = sums[k] / count;
  }
  return { rows: to - from };
};

export const encodeLists: TaskHandler<'encode-lists'> = (scope) => {
  const { from, to, rank } = scope.params;
  const [members, offsets, starts] = ['members', 'offsets', 'starts'].map((name) =>
    column<Uint32Array>(scope, name),
  );
  const means = column<Float32Array>(scope, 'means');
  const { buffer, byteOffset, byteLength } = column<Uint8Array>(scope, 'codes');
  const codes = new Int8Array(buffer, byteOffset, byteLength);
  const guide = column<Uint32Array>(scope, 'guide');
  const columns = guide.length / 4;
  const numbers = new Float32Array(guide.buffer, guide.byteOffset, guide.length);
  const read = vectorReader(column<Float32Array>(scope, 'vectors'), scope.params);
  const width = 16 * Math.ceil(rank / 16);
  const vector = new Float32Array(rank);
  const rotate = rotation(rank);
  const zeros = new Float32Array(rank);
  const differs = new Uint8Array(rank);
  let longest = 0;
  for (let list = from; list < to && !scope.cancelled(); list++) {
    const own = members.subarray(offsets[list], offsets[list + 1]);
    const mean = means.subarray(list * rank, (list + 1) * rank);
    const lengths = new Float32Array(own.length);
    own.forEach((item, at) => {
      read(item, vector, 0);
      let [squares, all] = [0, 0];
      for (let k = 0; k < rank; k++) {
        const difference = vector[k] - mean[k];
        if (difference !== 0) differs[k] = 1;
        squares += difference * difference;
        all += vector[k] * vector[k];
      }
      lengths[at] = Math.sqrt(squares);
      longest = Math.max(longest, all);
    });
    const order = fallingOrder(lengths);
    const [start, end] = [starts[list], starts[list + 1]];
    for (let at = 0; at < own.length; at++) {
      const place = start + at;
      read(own[order[at]], vector, 0);
      for (let k = 0; k < rank; k++) vector[k] -= mean[k];
      rotate(vector);
      const { scale, remainder } = toBytes(vector, zeros, codes, place * width);
      numbers[place] = (lengths[order[at]] + remainder) * ROUND_UP;
      numbers[columns + place] = remainder * ROUND_UP;
      numbers[2 * columns + place] = scale;
      guide[3 * columns + place] = own[order[at]];
    }
    for (let place = start + own.length; place < end; place++) guide[3 * columns + place] = NO_ITEM;
    // Sums of lengths and remainders may rise from column to column, but a scan ends at the first that is too
    // small.
    for (let place = start + own.length - 2; place >= start; place--)
      numbers[place] = Math.max(numbers[place], numbers[place + 1]);
  }
  return { rows: to - from, values: { longest: Math.sqrt(longest), differs: Array.from(differs) } };
};

export const loadLists: TaskHandler<'load-lists'> = (scope) => {
  const { buffer } = scope.memory;
  const names = ['centerRows', 'radii', 'coarse', 'columnGuide', 'signs'];
  const [rows, radii, coarse, columnGuide, signs] = names.map((name) => scope.matrix(name));
  const centers = column<Float32Array>(scope, 'centers');
  const target = new Float32Array(buffer, rows.pointer, rows.rows * rows.stride);
  target.fill(0);
  for (let row = 0; row * rows.columns < centers.length; row++)
    target.set(centers.subarray(row * rows.columns, (row + 1) * rows.columns), row * rows.stride);
  const starts = column<Uint32Array>(scope, 'starts');
  const guide = column<Uint32Array>(scope, 'guide');
  const numbers = new Float32Array(guide.buffer, guide.byteOffset, guide.length);
  const radius = new Float32Array(buffer, radii.pointer, radii.stride);
  radius.fill(0);
  for (let list = 0; list < starts.length - 1; list++)
    if (starts[list] < starts[list + 1]) radius[list] = numbers[starts[list]];
  new Uint32Array(buffer, columnGuide.pointer, guide.length).set(guide);
  const codes = column<Uint8Array>(scope, 'codes');
  new Uint8Array(buffer, coarse.pointer, codes.length).set(codes);
  scope.kernels.packSigns(coarse.pointer, 4 * coarse.stride, coarse.rows, signs.pointer);
  return { rows: starts.length - 1, bytesUp: codes.length + 4 * (guide.length + centers.length) };
};

function column<T>(scope: Pick<TaskScope, 'partition'>, name: string): T {
  return scope.partition(name).columns.values as T;
}
