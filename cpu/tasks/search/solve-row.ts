import type { TaskHandler, TaskScope } from '../../handler.ts';

/** See `solve-row` of KernelTasks. */
export const solveRow: TaskHandler<'solve-row'> = (scope) => {
  const { rank, bias, items, weights, targets, shift, biasShift, explained } = scope.params;
  const size = rank + (bias ? 1 : 0);
  const features = featuresOf(scope, rank, bias);
  const matrix = new Float64Array(size * size);
  if (scope.hasInput('gram')) addGram(scope, matrix, rank);
  const right = new Float64Array(size);
  const rows = items.map(features);
  const left = rows.map(({ itemBias }, k) => targets[k] - itemBias);
  rows.forEach(({ phi }, k) => {
    for (let i = 0; i < size; i++) {
      right[i] += left[k] * phi[i];
      const scaled = weights[k] * phi[i];
      for (let j = 0; j <= i; j++) matrix[i * size + j] += scaled * phi[j];
    }
  });
  for (let i = 0; i < size; i++) matrix[i * size + i] += i < rank ? shift : biasShift;
  const solvable = factorize(matrix, size);
  const x = solvable ? solve(matrix, right, size) : right.fill(Number.NaN);
  const asked = explained === undefined ? undefined : features(explained);
  const share = asked && solve(matrix, Float64Array.from(asked.phi), size);
  const parts = share ? rows.map(({ phi }, k) => left[k] * dot(phi, share)) : [];
  return {
    rows: 1,
    values: { x: x.every(Number.isFinite) ? Array.from(x) : [], parts, itemBias: asked?.itemBias ?? 0 },
  };
};

/** φ_v and γ_v of an item by its number. */
function featuresOf(scope: TaskScope, rank: number, bias: boolean) {
  const [exact, guide] = [scope.matrix('exact'), scope.matrix('guide')];
  const values = new Float32Array(scope.memory.buffer, exact.pointer, exact.rows * exact.stride);
  const places = new Uint32Array(scope.memory.buffer, guide.pointer + 16 * guide.stride, guide.stride);
  return (item: number): { readonly phi: Float64Array; readonly itemBias: number } => {
    const at = places[item] * exact.stride;
    const phi = new Float64Array(rank + (bias ? 1 : 0));
    phi.set(values.subarray(at, at + rank));
    if (bias) phi[rank] = 1;
    return { phi, itemBias: bias ? values[at + rank + 1] : 0 };
  };
}

function addGram(scope: TaskScope, matrix: Float64Array, rank: number): void {
  const { pointer, stride } = scope.matrix('gram');
  const gram = new Float32Array(scope.memory.buffer, pointer, rank * stride);
  for (let i = 0; i < rank; i++) for (let j = 0; j <= i; j++) matrix[i * rank + j] += gram[i * stride + j];
}

/** A = L Lᵀ in the lower triangle; false where A is not positive definite. */
function factorize(matrix: Float64Array, size: number): boolean {
  for (let i = 0; i < size; i++) {
    for (let j = 0; j <= i; j++) {
      let sum = matrix[i * size + j];
      for (let k = 0; k < j; k++) sum -= matrix[i * size + k] * matrix[j * size + k];
      if (i > j) matrix[i * size + j] = sum / matrix[j * size + j];
      else if (sum > 0) matrix[i * size + i] = Math.sqrt(sum);
      else return false;
    }
  }
  return true;
}

/** L Lᵀ x = b, in the place of b. */
function solve(matrix: Float64Array, x: Float64Array, size: number): Float64Array {
  for (let i = 0; i < size; i++) {
    for (let k = 0; k < i; k++) x[i] -= matrix[i * size + k] * x[k];
    x[i] /= matrix[i * size + i];
  }
  for (let i = size - 1; i >= 0; i--) {
    for (let k = i + 1; k < size; k++) x[i] -= matrix[k * size + i] * x[k];
    x[i] /= matrix[i * size + i];
  }
  return x;
}

function dot(left: Float64Array, right: Float64Array): number {
  let sum = 0;
  for (let k = 0; k < left.length; k++) sum += left[k] * right[k];
  return sum;
}
