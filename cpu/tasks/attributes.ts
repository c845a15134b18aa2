import { Ridge } from '../generated/structs.ts';
import { blockOf, type ScopeOf, type TaskHandler, type TaskScope, valuesOf } from '../handler.ts';
import { ScratchAddresses, Struct } from '../scratch.ts';
import { CHUNK_ROWS, type RowChunk, rowChunks, rowColumn, workspaceOf } from './row-chunks.ts';
import { biasShift, rowShift } from './solvers.ts';

/** Passes of passAttributes. */
const RESIDUAL = 0;
const PRODUCT = 1;
const PREDICTION = 2;

/** Columns that are computed together. */
const COLUMNS = 8;

/** Features between two checks for cancellation. */
const FEATURES = 65_536;

/**
 * A column ends where ρ, the square of the residual's size, is at most this fraction of its first value for A = 0,
 * for which AᵀM A stands where A is not 0: float32 improves it little further.
 */
const CONVERGED = 1e-11;

/**
 * See `fit-coefficients` of KernelTasks. A task takes all steps of its columns, so that nothing is added up over
 * tasks.
 */
export const fitCoefficients: TaskHandler<'fit-coefficients'> = (scope) => {
  const { from, to } = scope.params;
  let steps = 0;
  for (let column = from; column < to && !scope.cancelled(); column += COLUMNS)
    steps = Math.max(steps, fitColumns(scope, column));
  return { rows: to - from, values: { steps } };
};

export const multiplyAttributes: TaskHandler<'multiply-attributes'> = (scope) => {
  const { from, to, rank, first = 0 } = scope.params;
  const { pointer, stride } = scope.matrix('coefficients');
  const { take } = new ScratchAddresses(workspaceOf(scope).address);
  const ridge = new Struct(scope.memory, take(Ridge.bytes), Ridge).clear();
  // A vector, or rows that will be sent to another device, in the stride of that device.
  const host = scope.hasMatrix('product') ? undefined : scope.partition('product');
  const room = take(4 * COLUMNS * CHUNK_ROWS);
  for (const chunk of attributeChunks(scope, first + from, first + to)) {
    const row = chunk.row - first;
    for (let column = 0; column < rank; column += COLUMNS) {
      ridge.set({ coefficients: pointer + 4 * column, coefficientBytes: 4 * stride });
      const { address, bytes } = host
        ? { address: room, bytes: 4 * COLUMNS }
        : columnsOf(scope, 'product', { row }, column);
      scope.kernels.passAttributes(ridge.address, PREDICTION, ...rowsAt(chunk), 0, address, bytes);
      if (host === undefined) continue;
      const [values, own] = [host.columns.values as Float32Array, roomOf(scope, room, chunk)];
      const [width, columns] = [values.length / host.rows, Math.min(COLUMNS, rank - column)];
      for (let r = 0; r < chunk.rows; r++)
        for (let k = 0; k < columns; k++) values[(row + r) * width + column + k] = own[COLUMNS * r + k];
    }
  }
  return { rows: to - from };
};

/**
 * Fits the eight columns from `column` on, starting from their previous coefficients. Returns the number of steps.
 */
function fitColumns(scope: ScopeOf<'fit-coefficients'>, column: number): number {
  const { steps } = scope.params;
  const { kernels } = scope;
  const features = scope.matrix('coefficients').rows;
  const { take } = new ScratchAddresses(workspaceOf(scope).address);
  const [factorsAt, sumsAt, sizesAt] = [take(4 * COLUMNS), take(8 * COLUMNS), take(8 * COLUMNS)];
  const factors = new Float32Array(scope.memory.buffer, factorsAt, COLUMNS);
  const sums = new Float64Array(scope.memory.buffer, sumsAt, COLUMNS);
  const problem = ridgeOf(scope, column, take(Ridge.bytes)).set({
    factors: factorsAt,
    sums: sumsAt,
    sizes: sizesAt,
  });
  const { address } = problem;
  const room = take(4 * COLUMNS * CHUNK_ROWS);
  /** Runs a kernel over all features. Returns the sums of the columns. */
  const over = (kernel: (problem: number, from: number, to: number) => void): Float64Array => {
    sums.fill(0);
    for (let first = 0; first < features && !scope.cancelled(); first += FEATURES)
      kernel(address, first, Math.min(features, first + FEATURES));
    return sums.slice();
  };
  passRows(scope, address, RESIDUAL, column, room);
  const sizes = new Float64Array(scope.memory.buffer, sizesAt, COLUMNS).fill(0);
  let rho = over(kernels.beginRidge);
  const enough = rho.map((first, k) => CONVERGED * Math.max(first, sizes[k]));
  for (let step = 1; ; step++) {
    if (rho.every((value, k) => value <= enough[k])) return step - 1;
    passRows(scope, address, PRODUCT, column, room);
    const curvature = over(kernels.endProduct);
    for (let k = 0; k < COLUMNS; k++) factors[k] = curvature[k] > 0 ? rho[k] / curvature[k] : 0;
    const next = over(kernels.stepRidge);
    if (step === steps || scope.cancelled()) return step;
    for (let k = 0; k < COLUMNS; k++) factors[k] = rho[k] > 0 ? next[k] / rho[k] : 0;
    over(kernels.turnRidge);
    rho = next;
  }
}

/**
 * The regression of eight columns. Its vectors are in the matrix `work`, whose rows are used as one array: R, P
 * and Q of each eight columns, then M of each.
 */
function ridgeOf(scope: ScopeOf<'fit-coefficients'>, column: number, at: number): Struct<typeof Ridge> {
  const [coefficients, previous] = [scope.matrix('coefficients'), scope.matrix('previous')];
  const { rows: features, stride } = coefficients;
  const memory = new Float32Array(scope.memory.buffer);
  for (let feature = 0; feature < features; feature++) {
    const start = previous.pointer / 4 + feature * stride + column;
    memory.copyWithin(coefficients.pointer / 4 + feature * stride + column, start, start + COLUMNS);
  }
  const bytes = 4 * COLUMNS * features;
  const work = scope.matrix('work').pointer;
  const [block, blocks] = [column / COLUMNS, stride / COLUMNS];
  const vectors = work + block * 3 * bytes;
  const inverse = work + blocks * 3 * bytes + block * 4 * features;
  memory.fill(0, vectors / 4, (vectors + 3 * bytes) / 4);
  memory.fill(0, inverse / 4, inverse / 4 + features);
  return new Struct(scope.memory, at, Ridge).clear().set({
    ridge: scope.params.ridge,
    coefficients: coefficients.pointer + 4 * column,
    coefficientBytes: 4 * stride,
    residual: vectors,
    direction: vectors + bytes,
    product: vectors + 2 * bytes,
    inverse,
  });
}

/** One pass over all rows' attributes. `room`: for eight columns of a chunk's rows. */
function passRows(
  scope: ScopeOf<'fit-coefficients'>,
  ridge: number,
  which: typeof RESIDUAL | typeof PRODUCT,
  column: number,
  room: number,
): void {
  const { kernels } = scope;
  const { offsets } = blockOf(scope, 'attributes');
  const weights = rowColumn(scope, 0);
  const weightOf = weightsOf(scope);
  const bias = valuesOf(scope, 'bias');
  for (const chunk of attributeChunks(scope, 0, offsets.length - 1)) {
    const { row, rows } = chunk;
    for (let r = 0; r < rows; r++) weights.values[r] = weightOf(row + r);
    if (which === RESIDUAL) kernels.addAttributeSquares(ridge, ...rowsAt(chunk), weights.address);
    if (which === RESIDUAL && bias) {
      const own = roomOf(scope, room, chunk).fill(0);
      for (let r = 0; r < rows; r++) own[COLUMNS * r] = bias[row + r];
    }
    const { address, bytes } = bias
      ? { address: room, bytes: 4 * COLUMNS }
      : columnsOf(scope, 'factors', chunk, column);
    kernels.passAttributes(ridge, which, ...rowsAt(chunk), weights.address, address, bytes);
  }
}

/** The attributes of some rows, chunk by chunk. */
function* attributeChunks(scope: TaskScope, from: number, to: number): Generator<RowChunk> {
  for (const chunk of rowChunks(scope, from, to, COLUMNS, COLUMNS, 'attributes')) {
    if (!chunk.starts || !chunk.ends) throw new Error(`row ${chunk.row} has too many attributes`);
    yield chunk;
  }
}

function rowsAt({ offsets, indices, values, rows }: RowChunk) {
  return [offsets, indices, values, rows] as const;
}

/** Eight columns of a chunk's rows in a matrix. */
function columnsOf(scope: TaskScope, name: string, { row }: Pick<RowChunk, 'row'>, column: number) {
  const { pointer, stride } = scope.matrix(name);
  return { address: pointer + 4 * (row * stride + column), bytes: 4 * stride };
}

function roomOf({ memory }: TaskScope, room: number, { rows }: RowChunk): Float32Array {
  return new Float32Array(memory.buffer, room, COLUMNS * rows);
}

/** The weight of a row: the shift of its factors, or of its bias; 0 for a row without ratings. */
function weightsOf(scope: ScopeOf<'fit-coefficients'>): (row: number) => number {
  const shifts = valuesOf(scope, 'shifts');
  if (shifts !== undefined) return (row) => shifts[row];
  const { params } = scope;
  const { offsets } = blockOf(scope);
  const shiftOf = scope.hasInput('bias') ? biasShift : rowShift;
  return (row) => {
    const n = (offsets[row + 1] - offsets[row]) | 0;
    return n === 0 ? 0 : shiftOf(n, params);
  };
}
