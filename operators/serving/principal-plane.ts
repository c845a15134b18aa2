/** Rows of a matrix: row r starts at `stride * rows[r]` of `values` and has `features` numbers. */
export interface PlaneInput {
  readonly values: Float32Array;
  readonly stride: number;
  readonly features: number;
  readonly rows: ArrayLike<number>;
}

export interface PrincipalPlane {
  /** x and y of each row, in order: rows x 2. */
  readonly points: Float64Array;
  /** Shares of the rows' variance along x and y, 0 to 1. */
  readonly shares: readonly [x: number, y: number];
}

/**
 * Limit of iterations. If two of the three largest variances are nearly equal, the iteration hardly
 * converges. Then it does not matter which of these two directions is found: the last plane is nearly as good
 * as the best.
 */
const MOST_STEPS = 300;

/** The iteration ends when the directions change by less than this. */
const CONVERGED = 1e-10;

/**
 * Projects rows on the plane of largest variance (PCA), to draw them: subspace iteration over the features x
 * features covariance matrix, in float64. Deterministic; the largest coordinate of each axis is positive. A
 * direction without variance gives zeros.
 */
export function principalPlane(input: PlaneInput): PrincipalPlane {
  const { features, rows } = input;
  const centred = centredRows(input);
  const covariance = covarianceOf(centred, features);
  const trace = covariance.reduce((sum, value, at) => (at % (features + 1) === 0 ? sum + value : sum), 0);
  const points = new Float64Array(2 * rows.length);
  if (!(trace > 0)) return { points, shares: [0, 0] };
  const axes = principalAxes(covariance, features);
  const shares = axes.map((axis) => dot(axis, product(covariance, axis)) / trace);
  const order = shares[1] > shares[0] ? [1, 0] : [0, 1];
  order.forEach((from, to) => project(centred, axes[from], points, to));
  return { points, shares: [shares[order[0]], shares[order[1]]] };
}

function centredRows({ values, stride, features, rows }: PlaneInput): Float64Array {
  const centred = new Float64Array(rows.length * features);
  for (let k = 0; k < features; k++) {
    let sum = 0;
    for (let r = 0; r < rows.length; r++) sum += values[stride * rows[r] + k];
    for (let r = 0; r < rows.length; r++)
      centred[r * features + k] = values[stride * rows[r] + k] - sum / rows.length;
  }
  return centred;
}

function covarianceOf(centred: Float64Array, features: number): Float64Array {
  const covariance = new Float64Array(features * features);
  for (let start = 0; start < centred.length; start += features) {
    for (let i = 0; i < features; i++) {
      const value = centred[start + i];
      for (let j = 0; j <= i; j++) covariance[i * features + j] += value * centred[start + j];
    }
  }
  for (let i = 0; i < features; i++)
    for (let j = 0; j < i; j++) covariance[j * features + i] = covariance[i * features + j];
  return covariance;
}

/** Unit eigenvectors of the two largest eigenvalues; the second is zero if there is only one feature. */
function principalAxes(covariance: Float64Array, features: number): readonly Float64Array[] {
  let axes = orthonormal([startOf(features, 1), startOf(features, 2)]);
  for (let step = 0; step < MOST_STEPS; step++) {
    const next = orthonormal(axes.map((axis) => product(covariance, axis)));
    const change = Math.max(...next.map((axis, at) => length(axis) - Math.abs(dot(axis, axes[at]))));
    axes = next;
    if (change < CONVERGED) break;
  }
  return axes;
}

/** A starting vector that is irregular (from a sine), so that it is not orthogonal to an eigenvector. */
function startOf(features: number, which: number): Float64Array {
  return Float64Array.from({ length: features }, (_, k) => Math.sin(which * (12.9898 * (k + 1) + 0.5)));
}

function orthonormal([first, second]: readonly Float64Array[]): Float64Array[] {
  const a = scaled(first, 1 / Math.max(length(first), Number.MIN_VALUE));
  const along = dot(a, second);
  const rest = second.map((value, k) => value - along * a[k]);
  // A remainder that is only rounding error has no direction.
  return [a, length(rest) <= 1e-12 * length(second) ? rest.fill(0) : scaled(rest, 1 / length(rest))];
}

function project(centred: Float64Array, axis: Float64Array, points: Float64Array, to: number): void {
  const largest = axis.reduce((most, value) => (Math.abs(value) > Math.abs(most) ? value : most), 0);
  const sign = largest < 0 ? -1 : 1;
  for (let r = 0, start = 0; start < centred.length; r++, start += axis.length) {
    let sum = 0;
    for (let k = 0; k < axis.length; k++) sum += axis[k] * centred[start + k];
    points[2 * r + to] = sign * sum;
  }
}

function product(matrix: Float64Array, vector: Float64Array): Float64Array {
  const size = vector.length;
  return Float64Array.from({ length: size }, (_, i) =>
    dot(matrix.subarray(i * size, (i + 1) * size), vector),
  );
}

function dot(a: Float64Array, b: Float64Array): number {
  let sum = 0;
  for (let k = 0; k < a.length; k++) sum += a[k] * b[k];
  return sum;
}

function length(vector: Float64Array): number {
  return Math.sqrt(dot(vector, vector));
}

function scaled(vector: Float64Array, by: number): Float64Array {
  return vector.map((value) => value * by);
}
