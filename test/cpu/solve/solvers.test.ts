import { describe, expect, it } from 'vitest';
import { availableBuild, compileKernels } from '../../../cpu/compile-kernels.ts';
import { relaxedSimd, simd } from '../../../cpu/generated/kernels-wasm.ts';
import { loadKernels } from '../../../cpu/kernels.ts';
import { normalEquations } from '../../../cpu/reference/normal-equations.ts';
import { solveCholesky, conjugateGradient } from '../../../cpu/reference/solvers.ts';
import { everyNth } from '../../support/deep.ts';
import { TestMemory, builds, ratingBlock, relativeDistance, residual, rowOf } from '../scope.ts';

const ranks = everyNth([1, 7, 8, 10, 32, 63, 64, 100, 128, 200, 512], 3);

/** One row's problem in WebAssembly memory and its twin's A and b. */
function makeProblem(memory: TestMemory, rank: number, count: number, lambda: number) {
  const theta = memory.matrix(97, rank, rank + count);
  const block = ratingBlock([count], theta.rows, count);
  const row = rowOf(block, 0);
  const { stride } = theta;
  const twin = normalEquations(memory.values(theta), stride, rank, row, lambda);
  const size = 4 * stride;
  const workspace = memory.allocate(stride * size + 7 * size + 4 * stride * (Math.max(stride, count) + 40));
  const [indices, values] = [
    memory.copyIn(new Uint32Array(row.indices)),
    memory.copyIn(new Float32Array(row.values)),
  ];
  const x = memory.allocate(size);
  const problem = memory.problem({
    theta: theta.pointer,
    size,
    rank,
    workspace,
    indices,
    values,
    count,
    x,
    previous: x,
    far: 1,
  });
  const bias = memory.kernels.vectorsOf(workspace, size);
  return { theta, row, stride, size, twin, problem, matrix: workspace, bias, x, work: memory.allocate(size) };
}

describe.each(builds)('kernels with %s', (build) => {
  it.each(ranks)('solve by Cholesky, the dual and CG, rank %i', (rank) => {
    const count = Math.max(2, Math.min(50, Math.floor(rank * 0.7)));
    const memory = new TestMemory(build);
    const { row, size, twin, problem, matrix, bias, x, work } = makeProblem(memory, rank, count, 0.05);
    const { kernels } = memory;
    const solution = memory.floats(x, rank);
    const expected = solveCholesky(twin.matrix, twin.bias)!;
    // xᵀA x - 2 bᵀx in float64, relative to Σ r², its largest term.
    const expectObjective = () => {
      let sum = 0;
      for (let i = 0; i < rank; i++) {
        sum -= 2 * twin.bias[i] * solution[i];
        for (let j = 0; j < rank; j++) sum += twin.matrix[i * rank + j] * solution[i] * solution[j];
      }
      const squares = row.values.reduce((all, value) => all + value * value, 0);
      expect(Math.abs(problem.get('objective') - sum) / squares).toBeLessThan(2e-6);
    };
    const form = () => {
      kernels.accumulateRow(problem.address, 0, 0);
      kernels.addDiagonal(matrix, size, rank, 0.05 * count);
    };

    form();
    expect(kernels.solveCholesky(matrix, size, bias, x, work)).toBe(1);
    expect(residual(twin.matrix, solution, twin.bias)).toBeLessThan(1e-6);
    expect(relativeDistance(solution, expected)).toBeLessThan(1e-4);

    problem.set({ shift: 0.05 * count });
    expect(kernels.solveDual(problem.address)).toBe(1);
    expect(residual(twin.matrix, solution, twin.bias)).toBeLessThan(1e-6);
    expect(relativeDistance(solution, expected)).toBeLessThan(1e-4);
    expectObjective();

    const start = Float64Array.from({ length: rank }, (_, k) => Math.fround(Math.sin(k)));
    const steps = Math.min(4, rank);
    const reference = conjugateGradient(twin.matrix, twin.bias, start, steps);
    problem.set({ steps });
    form();
    memory
      .floats(x, size / 4)
      .fill(0)
      .set(start);
    kernels.solveFormed(problem.address);
    expect(relativeDistance(solution, reference)).toBeLessThan(1e-4);
    expectObjective();
    for (const kept of [8, 64]) {
      memory
        .floats(x, size / 4)
        .fill(0)
        .set(start);
      kernels.solveMatrixFree(problem.address, kept);
      expect(relativeDistance(solution, reference)).toBeLessThan(1e-4);
      expectObjective();
    }
  });
});

describe('the two builds', () => {
  it('are chosen by the features of the runtime', () => {
    expect(availableBuild()).toBe('relaxed-simd');
  });

  it('keep no state: no globals, tables or data segments', () => {
    for (const text of [relaxedSimd, simd]) {
      const bytes = Buffer.from(text, 'base64');
      const sections: number[] = [];
      for (let at = 8; at < bytes.length;) {
        sections.push(bytes[at++]);
        let [size, shift] = [0, 0];
        for (;;) {
          const byte = bytes[at++];
          size |= (byte & 127) << shift;
          shift += 7;
          if (byte < 128) break;
        }
        at += size;
      }
      // 1 type, 2 import, 3 function, 7 export, 10 code; 0 custom
      expect(sections.filter((id) => ![0, 1, 2, 3, 7, 10].includes(id))).toEqual([]);
    }
  });

  it('load with the faster one by default', () => {
    const memory = new WebAssembly.Memory({ initial: 1, maximum: 65_536, shared: true });
    expect(typeof loadKernels(memory, compileKernels()).updateRows).toBe('function');
  });
});
