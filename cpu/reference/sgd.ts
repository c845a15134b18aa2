/** Ratings in visiting order. */
export interface VisitedRatings {
  readonly rows: ArrayLike<number>;
  readonly columns: ArrayLike<number>;
  readonly values: ArrayLike<number>;
}

export interface ReferenceSteps {
  readonly rank: number;
  readonly biases: boolean;
  readonly rate: number;
  readonly rowLambda: number;
  readonly columnLambda: number;
}

/** Sums of squared gradients of each row and column, for AdaGrad. */
export interface ReferenceSums {
  readonly rows: Float64Array;
  readonly columns: Float64Array;
}

/**
 * Float64 version of cpu/assembly/sgd.ts. Updates p and q, which
 * have rows of `stride` elements, for one rating after the other. With biases, element 1 of a row of p and
 * element 0 of a row of q are constant.
 */
export function stepInOrder(
  p: Float64Array,
  q: Float64Array,
  stride: number,
  ratings: VisitedRatings,
  steps: ReferenceSteps,
  sums?: ReferenceSums,
): void {
  const { rank, biases, rate, rowLambda, columnLambda } = steps;
  const features = rank + (biases ? 2 : 0);
  const trained = rank + (biases ? 1 : 0);
  for (let k = 0; k < ratings.values.length; k++) {
    const [row, column] = [ratings.rows[k], ratings.columns[k]];
    const [x, theta] = [
      p.subarray(row * stride, row * stride + features),
      q.subarray(column * stride, column * stride + features),
    ];
    let error = ratings.values[k];
    for (let f = 0; f < features; f++) error -= x[f] * theta[f];
    const rowRate = sums ? rate / Math.sqrt(1 + sums.rows[row]) : rate;
    const columnRate = sums ? rate / Math.sqrt(1 + sums.columns[column]) : rate;
    for (let f = 0; f < features; f++) {
      const rowGradient = biases && f === 1 ? 0 : error * theta[f] - rowLambda * x[f];
      const columnGradient = biases && f === 0 ? 0 : error * x[f] - columnLambda * theta[f];
      x[f] += rowRate * rowGradient;
      theta[f] += columnRate * columnGradient;
      if (sums) {
        sums.rows[row] += rowGradient ** 2 / trained;
        sums.columns[column] += columnGradient ** 2 / trained;
      }
    }
  }
}

export interface ReferenceShrink {
  readonly rate: number;
  readonly offset: number;
  readonly damping: number;
  readonly own?: number;
  readonly one?: number;
}

/** Float64 version of the task shrink-rows: divides rows of `stride` elements, in place. */
export function shrinkInPlace(
  x: Float64Array,
  stride: number,
  { rate, offset, damping, own, one }: ReferenceShrink,
  sums?: ArrayLike<number>,
): void {
  for (let at = 0; at < x.length; at++) {
    const column = at % stride;
    const gamma = sums ? rate / Math.sqrt(1 + sums[Math.floor(at / stride)]) : rate;
    if (column !== one) x[at] /= 1 + gamma * (column === own ? damping : offset);
  }
}
