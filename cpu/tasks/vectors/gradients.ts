/** Tasks on gradients, whose layout is in operators/tasks/vector-tasks.ts. */
import { blockOf, type MatrixView, type ScopeOf, type TaskHandler, valuesOf } from '../../handler.ts';
import { requireEquations } from '../equations.ts';
import { gramAndShifts, ratingsOf, rowChunks, rowColumn, rowProblem, rowsOfChunk } from '../row-chunks.ts';
import { biasShift, rowShift } from '../solvers.ts';

/** Byte offsets of the numbers of a row of gradients from the row's address. */
interface GradientOffsets {
  readonly scalars: number;
  /** 0 without biases. */
  readonly sums: number;
}

/**
 * Returns the offsets. Throws if a matrix does not have the columns of gradients, or has less than `last`
 * rows.
 */
function gradientOffsets(
  task: string,
  { rows, columns }: MatrixView,
  rank: number,
  biases: boolean,
  last: number,
): GradientOffsets {
  const features = Math.ceil(rank / 16) * 16;
  const wanted = features + 16 + (biases ? features : 0);
  if (columns !== wanted || rows < last)
    throw new Error(
      `task ${task}: a matrix of ${rows} x ${columns} has no place for gradients of ${last} rows and rank ${rank}${biases ? ' with biases' : ''}, ${wanted} columns`,
    );
  return { scalars: 4 * features, sums: biases ? 4 * (features + 16) : 0 };
}

/** True if rows of gradients have room for s, the sums that biases need. */
function hasBiases({ columns }: MatrixView, rank: number): boolean {
  return columns > Math.ceil(rank / 16) * 16 + 16;
}

function rowAddress({ pointer, stride }: MatrixView, row: number): number {
  return pointer + 4 * stride * row;
}

type Summed = ScopeOf<'add-residuals'> | ScopeOf<'add-products'>;

/**
 * Calls `add` for each row of a block that has ratings, whose problem is ready for the kernel
 * addVectorProducts but for p. Returns the bytes of the ratings.
 */
function forEachRow(
  scope: Summed,
  add: (problem: ReturnType<typeof rowProblem>, row: number, n: number, values: number) => void,
): number {
  const { from, to, implicit } = scope.params;
  const { offsets } = blockOf(scope);
  const fixed = scope.matrix('fixed');
  const problem = rowProblem(scope, fixed, implicit !== undefined).set({ theta: fixed.pointer, far: 1 });
  const work = problem.get('workspace');
  problem.set({ products: work, spare: work + 128 });
  const ratings = ratingsOf(scope, scope.params);
  let bytesUp = 0;
  for (const chunk of rowChunks(scope, from, to, fixed.stride / 8, 1)) {
    bytesUp += 8 * chunk.count + 4 * chunk.rows;
    const { values, weights } = ratings(chunk);
    for (const { row, at, n } of rowsOfChunk(chunk, offsets)) {
      const own = { indices: chunk.indices + at, values: values + at, weights: weights && weights + at };
      add(problem.set({ ...own, count: n }), row, n, values + at);
    }
  }
  return bytesUp;
}

export const addResiduals: TaskHandler<'add-residuals'> = (scope) => {
  const { from, to, rank } = scope.params;
  const [previous, gradients] = [scope.matrix('previous'), scope.matrix('gradients')];
  const biased = valuesOf(scope, 'fixedBias') !== undefined;
  const { scalars, sums } = gradientOffsets('add-residuals', gradients, rank, biased, to);
  const { kernels } = scope;
  const memory = new Float32Array(scope.memory.buffer);
  const bytesUp = forEachRow(scope, (problem, row, n, values) => {
    const target = rowAddress(gradients, row);
    const { address } = problem.set({ p: rowAddress(previous, row) });
    const along = kernels.addVectorProducts(address, 1, target, sums && target + sums);
    const numbers = (target + scalars) / 4;
    memory[numbers] += n;
    if (biased) memory[numbers + 1] += kernels.sumOf(values, n);
    memory[numbers + 2] += along;
  });
  return { rows: to - from, bytesUp };
};

export const addProducts: TaskHandler<'add-products'> = (scope) => {
  const { from, to } = scope.params;
  const [direction, products] = [scope.matrix('direction'), scope.matrix('products')];
  const bytesUp = forEachRow(scope, (problem, row) => {
    const { address } = problem.set({ p: rowAddress(direction, row) });
    scope.kernels.addVectorProducts(address, 0, rowAddress(products, row), 0);
  });
  return { rows: to - from, bytesUp };
};

export const equationResiduals: TaskHandler<'equation-residuals'> = (scope) => {
  const { from, to, rank } = scope.params;
  const [equations, previous, gradients] = [
    scope.matrix('equations'),
    scope.matrix('previous'),
    scope.matrix('gradients'),
  ];
  const biases = hasBiases(gradients, rank);
  requireEquations('equation-residuals', equations, rank, biases, to);
  const { scalars, sums } = gradientOffsets('equation-residuals', gradients, rank, biases, to);
  for (let row = from; row < to && !scope.cancelled(); row++) {
    const own = rowAddress(gradients, row);
    scope.kernels.addEquationResidual(
      rowAddress(equations, row),
      rank,
      rowAddress(previous, row),
      own,
      own + scalars,
      sums && own + sums,
    );
  }
  return { rows: to - from };
};

export const equationProducts: TaskHandler<'equation-products'> = (scope) => {
  const { from, to, rank } = scope.params;
  const [equations, direction, products] = [
    scope.matrix('equations'),
    scope.matrix('direction'),
    scope.matrix('products'),
  ];
  for (let row = from; row < to && !scope.cancelled(); row++)
    scope.kernels.addTriangleProducts(
      rowAddress(equations, row),
      rank,
      1,
      rowAddress(direction, row),
      rowAddress(products, row),
    );
  return { rows: to - from };
};

type Stepping = ScopeOf<'begin-gradients'> | ScopeOf<'step-gradients'> | ScopeOf<'end-gradients'>;

/**
 * Calls `act` for each row of a task that takes steps, whose problem has its x, p, r, s, shift and bias.
 * `scalars`: the address of the row's numbers; `n`: its ratings.
 */
function forEachGradient(
  scope: Stepping,
  task: string,
  biased: boolean,
  act: (problem: number, row: number, scalars: number, n: number) => void,
): void {
  const { from, to, rank } = scope.params;
  const [gradients, factors] = [scope.matrix('gradients'), scope.matrix('factors')];
  const direction = scope.hasMatrix('direction') ? scope.matrix('direction') : factors;
  const { gram, shifts } = gramAndShifts(scope);
  const offsets = gradientOffsets(task, gradients, rank, biased, to);
  const memory = new Float32Array(scope.memory.buffer);
  const problem = rowProblem(scope, factors).set({ gram });
  problem.set({ q: problem.get('workspace') });
  for (let row = from; row < to && !scope.cancelled(); row++) {
    const r = rowAddress(gradients, row);
    const scalars = r + offsets.scalars;
    const n = memory[scalars / 4];
    problem.set({
      shift: shifts?.[row] ?? rowShift(n, scope.params),
      weight: n + biasShift(n, scope.params),
      r,
      sums: n > 0 && offsets.sums ? r + offsets.sums : 0,
      x: rowAddress(factors, row),
      p: rowAddress(direction, row),
    });
    act(problem.address, row, scalars, n);
  }
}

export const beginGradients: TaskHandler<'begin-gradients'> = (scope) => {
  const { from, to, rank } = scope.params;
  const [previous, factors] = [scope.matrix('previous'), scope.matrix('factors')];
  const memory = new Float32Array(scope.memory.buffer);
  memory.copyWithin(
    rowAddress(factors, from) / 4,
    rowAddress(previous, from) / 4,
    rowAddress(previous, to) / 4,
  );
  const biased = hasBiases(scope.matrix('gradients'), rank);
  forEachGradient(scope, 'begin-gradients', biased, (problem, _, scalars) =>
    scope.kernels.beginVectors(problem, scalars),
  );
  return { rows: to - from };
};

export const stepGradients: TaskHandler<'step-gradients'> = (scope) => {
  const { from, to, rank } = scope.params;
  const products = scope.matrix('products');
  const biased = hasBiases(scope.matrix('gradients'), rank);
  forEachGradient(scope, 'step-gradients', biased, (problem, row, scalars) =>
    scope.kernels.stepVectors(problem, scalars, rowAddress(products, row)),
  );
  return { rows: to - from };
};

export const endGradients: TaskHandler<'end-gradients'> = (scope) => {
  const { from, to } = scope.params;
  const factors = scope.matrix('factors');
  const bias = valuesOf(scope, 'bias');
  const memory = new Float32Array(scope.memory.buffer);
  const solved = rowColumn(scope, 0);
  let badRow = -1;
  forEachGradient(scope, 'end-gradients', bias !== undefined, (problem, row, scalars, n) => {
    const x = rowAddress(factors, row) / 4;
    solved.values[0] = 0;
    if (n === 0) memory.fill(0, x, x + factors.stride);
    else if (!scope.kernels.endVectors(problem, scalars, bias ? solved.address : 0) && badRow < 0)
      badRow = row;
    if (bias) bias[row] = solved.values[0];
  });
  return { rows: to - from, values: { badRow } };
};
