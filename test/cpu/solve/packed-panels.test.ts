/** Long rows, whose directions of conjugate gradients are made of panels in 16 bits, against float64. */
import { describe, expect, it } from 'vitest';
import { normalEquations } from '../../../cpu/reference/normal-equations.ts';
import { updateRow } from '../../../cpu/reference/update.ts';
import { update } from '../../../cpu/tasks/update.ts';
import { floatClasses } from '../../support/float-classes.ts';
import { builds, ratingBlock, relativeDistance, residual, rowOf, TestMemory } from '../scope.ts';

const rank = 128;
/** Numbers of ratings around 1,024, the number from which panels are packed at rank 128. */
const lengths = [1023, 1024, 1025, 1031, 1500];
/**
 * The rounding to 16 bits averages out over a thousand ratings: it moves these rows by 5e-5 of their length
 * at most, and implicit ones, whose weights differ, by 5e-4.
 */
const ROUNDING = 1e-3;

function problem(build: (typeof builds)[number]) {
  const memory = new TestMemory(build);
  const theta = memory.matrix(2000, rank, 1);
  const factors = memory.matrix(lengths.length, rank, 3);
  const starts = lengths.map((_, row) =>
    Float64Array.from(memory.values(factors).subarray(row * rank, (row + 1) * rank)),
  );
  const solved = (row: number) => memory.values(factors).subarray(row * rank, (row + 1) * rank);
  return { memory, theta, factors, starts, solved, block: ratingBlock(lengths, theta.rows, 2) };
}

const params = (cgSteps: number) => ({ cgBelow: 2 ** 31 - 1, cgSteps, from: 0, to: lengths.length, rank });

describe.each(builds)('conjugate gradients on long rows with %s', (build) => {
  it.each([1, 6])('take %i steps of explicit rows', (steps) => {
    const { memory, theta, factors, starts, solved, block } = problem(build);
    update(
      memory.scope(
        { ...params(steps), lambda: 0.05 },
        { block },
        { fixed: theta, previous: factors, factors },
      ),
    );
    lengths.forEach((_, row) => {
      expect(
        relativeDistance(
          solved(row),
          updateRow(memory.values(theta), rank, rank, rowOf(block, row), 0.05, false, starts[row], steps)!,
        ),
      ).toBeLessThan(ROUNDING);
    });
  });

  it('take steps where elements of θ are 0', () => {
    const { memory, theta, factors, starts, solved, block } = problem(build);
    const values = memory.values(theta);
    for (let k = 0; k < values.length; k += 3) values[k] = k % 2 === 0 ? 0 : -0;
    values.fill(0, 0, 400 * rank);
    update(
      memory.scope({ ...params(3), lambda: 0.05 }, { block }, { fixed: theta, previous: factors, factors }),
    );
    lengths.forEach((_, row) => {
      expect(
        relativeDistance(
          solved(row),
          updateRow(values, rank, rank, rowOf(block, row), 0.05, false, starts[row], 3)!,
        ),
      ).toBeLessThan(ROUNDING);
    });
  });

  it('keep float32 where more steps than a quarter of the features shall converge', () => {
    const { memory, theta, factors, solved, block } = problem(build);
    update(
      memory.scope(
        { ...params(rank / 4 + 1), lambda: 0.05 },
        { block },
        { fixed: theta, previous: factors, factors },
      ),
    );
    lengths.forEach((_, row) => {
      const { matrix, bias } = normalEquations(memory.values(theta), rank, rank, rowOf(block, row), 0.05);
      expect(residual(matrix, solved(row), bias)).toBeLessThan(1e-5);
    });
  });

  it.each([8, 1104])('gather the ratings behind the first %i, whose panels fit, in every pass', (kept) => {
    const { memory, theta, factors, starts, solved, block } = problem(build);
    const { indices, values } = rowOf(block, 3);
    const [at, ratings] = [memory.copyIn(new Uint32Array(indices)), memory.copyIn(new Float32Array(values))];
    const size = 4 * rank;
    const x = factors.pointer + 3 * size;
    const { address } = memory.problem({
      theta: theta.pointer,
      size,
      rank,
      far: 1,
      steps: 3,
      shift: 0.05 * indices.length,
      indices: at,
      values: ratings,
      count: indices.length,
      x,
      previous: x,
      workspace: memory.allocate(rank * size + 7 * size + 1200 * size),
    });
    memory.kernels.solveMatrixFree(address, kept);
    expect(
      relativeDistance(
        solved(3),
        updateRow(memory.values(theta), rank, rank, { indices, values }, 0.05, false, starts[3], 3)!,
      ),
    ).toBeLessThan(ROUNDING);
  });

  it('pack numbers of every class to the nearest words', () => {
    // Ratings k and k + 4 of a panel share their words: their elements are all pairs of classes, several times,
    // since only a long row is packed.
    const ratings = 16 * floatClasses.length;
    const elements = 4 * floatClasses.length;
    const columns = elements + 8;
    const memory = new TestMemory(build);
    const theta = memory.allocate(4 * ratings * columns);
    const numbers = memory.floats(theta, ratings * columns);
    for (let k = 0; k < ratings; k++)
      for (let c = 0; c < elements; c++)
        numbers[k * columns + c] = floatClasses[(k % 8 < 4 ? k >> 3 : c) % floatClasses.length];
    const packed = packedWords(memory, { theta, ratings, columns });
    const wrong: string[] = [];
    for (let k = 0; k < ratings; k++)
      for (let c = 0; c < columns; c++) {
        const at = ((k >> 3) * columns + (c & ~3)) * 4 + 4 * (k & 3) + (c & 3);
        const exact = numbers[k * columns + c];
        const got = floatOf(k % 8 < 4 ? packed[at] : packed[at] << 16);
        // Rounded to 16 bits; a number below 2^-133 may become another one that small. Padding stays 0.
        const most = c < elements ? 2 ** -8 * Math.abs(exact) + 2 ** -133 : 0;
        if (!(Math.abs(got - exact) <= most)) wrong.push(`${exact} became ${got}`);
      }
    expect(wrong).toEqual([]);
  });

  it.each([Number.POSITIVE_INFINITY, Number.NaN])('report a row with θ of %d', (value) => {
    const { memory, theta, factors, block } = problem(build);
    memory.values(theta)[rowOf(block, 2).indices[500] * rank + 5] = value;
    const { values } = update(
      memory.scope(
        { ...params(1), from: 2, to: 3, lambda: 0.05 },
        { block },
        { fixed: theta, previous: factors, factors },
      ),
    );
    expect(values).toMatchObject({ badRow: 2 });
  });
});

const floatOf = (bits: number) => new Float32Array(Uint32Array.of(bits).buffer)[0];

/** The packed panels of a row that has each rating of θ once. */
function packedWords(
  memory: TestMemory,
  { theta, ratings, columns }: Readonly<Record<'theta' | 'ratings' | 'columns', number>>,
): Uint32Array {
  const size = 4 * columns;
  const workspace = memory.allocate((columns + 7 + ratings) * size);
  const { address } = memory.problem({
    theta,
    size,
    rank: columns,
    steps: 1,
    shift: 1,
    count: ratings,
    workspace,
    indices: memory.copyIn(Uint32Array.from({ length: ratings }, (_, k) => k)),
    values: memory.copyIn(new Float32Array(ratings)),
    x: memory.copyIn(new Float32Array(columns)),
  });
  memory.kernels.solveMatrixFree(address, ratings);
  const panels = memory.kernels.gatheredOf(workspace, size);
  return new Uint32Array(memory.memory.buffer, panels, (ratings * columns) / 2);
}
