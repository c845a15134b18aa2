import type { Partition } from '../../../engine/partition.ts';
import type { ScopeOf, TaskHandler } from '../../handler.ts';
import { SgdSides } from '../../generated/structs.ts';
import { Struct } from '../../scratch.ts';
import { rowChunks, workspaceOf } from '../row-chunks.ts';

/** Ratings in scratch at a time: few enough that their columns' vectors stay in the core's own cache, too. */
const CHUNK_RATINGS = 8_192;

/** Cost of a rating, in units of rowChunks, with which a chunk has about CHUNK_RATINGS ratings. */
const COST_PER_RATING = 8e6 / CHUNK_RATINGS;

export const sgdBlock: TaskHandler<'sgd-block'> = (scope) => {
  const block = scope.partition('block');
  const sides = writeSides(scope);
  const count =
    block.layout === 'rating-list' ? stepList(scope, block, sides) : stepBlock(scope, block, sides);
  return { rows: count, bytesUp: (block.layout === 'rating-list' ? 12 : 8) * count };
};

type Sides = Struct<typeof SgdSides>;

function stepBlock(scope: ScopeOf<'sgd-block'>, block: Partition, sides: Sides): number {
  const { rowStart = 0 } = scope.params;
  const [rowFactors, rowSums] = [sides.get('rowFactors'), sides.get('rowSums')];
  const size = sides.get('size');
  let count = 0;
  for (const chunk of rowChunks(scope, 0, block.rows, COST_PER_RATING, 1)) {
    const first = rowStart + chunk.row;
    sides.set({ rowFactors: rowFactors + first * size, rowSums: rowSums && rowSums + 4 * first });
    scope.kernels.stepRows(sides.address, chunk.offsets, chunk.indices, chunk.values, chunk.rows);
    count += chunk.count;
  }
  return count;
}

/**
 * Copies batches of ratings into scratch, in the order in which they are visited, and updates the factors
 * whenever scratch has CHUNK_RATINGS.
 */
function stepList(scope: ScopeOf<'sgd-block'>, list: Partition, sides: Sides): number {
  const { from = 0, to = 0, batch = 1 } = scope.params;
  const order = scope.partition('order').columns.order as Uint32Array;
  const sources = ['rows', 'columns', 'values'].map(
    (name) => list.columns[name] as Uint32Array | Float32Array,
  );
  const capacity = Math.max(CHUNK_RATINGS, batch);
  const [rowsAt, columnsAt, valuesAt] = [0, 1, 2].map((k) => scope.scratch + 4 * k * capacity);
  const { buffer } = scope.memory;
  const targets = [
    new Uint32Array(buffer, rowsAt, capacity),
    new Uint32Array(buffer, columnsAt, capacity),
    new Float32Array(buffer, valuesAt, capacity),
  ];
  let count = 0;
  for (let next = from; next < to && !scope.cancelled();) {
    let filled = 0;
    for (; next < to && filled + batch <= capacity; next++) {
      const first = order[next] * batch;
      const last = Math.min(first + batch, sources[0].length);
      targets.forEach((target, k) => target.set(sources[k].subarray(first, last), filled));
      filled += last - first;
    }
    scope.kernels.stepRatings(sides.address, rowsAt, columnsAt, valuesAt, filled);
    count += filled;
  }
  return count;
}

/** Writes the arguments of the kernels; the rows are from row 0 on. */
function writeSides(scope: ScopeOf<'sgd-block'>): Sides {
  const [rows, columns] = [scope.matrix('rows'), scope.matrix('columns')];
  const steps = writeSteps(scope);
  const sums = (name: string) => (scope.params.adaptive ? scope.matrix(name).pointer : 0);
  return new Struct(scope.memory, steps + STEPS_BYTES, SgdSides).set({
    rowFactors: rows.pointer,
    columnFactors: columns.pointer,
    size: rows.stride * 4,
    rowSums: sums('rowSums'),
    columnSums: sums('columnSums'),
    steps,
  });
}

const STEPS_BYTES = 128;

/**
 * Writes the vectors `steps` that cpu/assembly/sgd.ts reads. Returns their address.
 */
function writeSteps(scope: ScopeOf<'sgd-block'>): number {
  const { rank, biases, rate, rowLambda, columnLambda, adaptive } = scope.params;
  const address = workspaceOf(scope).address;
  const steps = new Float32Array(scope.memory.buffer, address, 32);
  const every = (vector: number, value: number) => steps.fill(value, 4 * vector, 4 * vector + 4);
  // With biases, element 1 of a row's vector and element 0 of a column's vector are constant 1.
  const [rowOne, columnOne] = [1, 0];
  if (adaptive) {
    [1, 1, rowLambda, columnLambda, rate, 1 / (rank + (biases ? 1 : 0))].forEach((value, vector) =>
      every(vector, value),
    );
    if (biases) [steps[rowOne], steps[4 + columnOne]] = [0, 0];
    return address;
  }
  [rowLambda, columnLambda].forEach((lambda, side) => {
    [1 - rate * lambda, rate, 1 - rate * lambda, rate].forEach((value, vector) =>
      every(4 * side + vector, value),
    );
    if (!biases) return;
    const one = 16 * side + (side === 0 ? rowOne : columnOne);
    [steps[one], steps[one + 4]] = [1, 0];
  });
  return address;
}

export const copyRows: TaskHandler<'copy-rows'> = (scope) => {
  const { from, to } = scope.params;
  const [source, target] = [scope.matrix('source'), scope.matrix('target')];
  const elements = new Float32Array(scope.memory.buffer);
  const first = source.pointer / 4 + from * source.stride;
  elements.copyWithin(target.pointer / 4 + from * target.stride, first, first + (to - from) * source.stride);
  return { rows: to - from };
};

export const shrinkRows: TaskHandler<'shrink-rows'> = (scope) => {
  const { from, to, rate, offset, damping, own, one, adaptive } = scope.params;
  const { pointer, stride } = scope.matrix('factors');
  const { buffer } = scope.memory;
  const factors = new Float32Array(buffer, pointer, to * stride);
  const sums = adaptive ? new Float32Array(buffer, scope.matrix('sums').pointer, to) : undefined;
  for (let row = from; row < to; row++) {
    const gamma = sums === undefined ? rate : rate / Math.sqrt(1 + sums[row]);
    const [factor, ofBias] = [1 / (1 + gamma * offset), 1 / (1 + gamma * damping)];
    const first = row * stride;
    const bias = own === undefined ? 0 : factors[first + own];
    for (let k = first; k < first + stride; k++) factors[k] *= factor;
    if (own !== undefined) factors[first + own] = bias * ofBias;
    if (one !== undefined) factors[first + one] = 1;
  }
  return { rows: to - from };
};
