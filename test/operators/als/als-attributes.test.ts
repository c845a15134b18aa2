/** ALS whose rows are drawn to what their attributes predict, compared with the same in float64. */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ContinuedFit } from '../../../api/training/run-fit.ts';
import { type KeyColumn, keyCount } from '../../../engine/keys/key-column.ts';
import { sharedArray } from '../../../engine/partition.ts';
import { ALS, type AlsOptions, type FitOptions, type Model, Session } from '../../../index.ts';
import { type AlsStart, modelCoefficients } from '../../../operators/als/factors.ts';
import type { AttributeMatrix } from '../../../operators/attributes/attribute-matrix.ts';
import { cpuSession } from '../../support/cpu-session.ts';
import { noGpu } from '../../support/gpu/open-gpu.ts';
import { randomRatings, ratingBatches, testRandom, type Triple } from '../../support/ratings.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { eliminate } from '../../support/reference/als.ts';

const session = await cpuSession();
const folder = temporaryFolder();
const ratings = randomRatings(51, 60, 40, 900);
const FEATURES = { users: 9, items: 12 };
const MU = 14;
type Side = 'users' | 'items';
const sides = ['users', 'items'] as const;

/** The constant and random features of the rows of a side, in the order of their ids. */
function denseAttributes(side: Side, rows: number): Float64Array[] {
  const random = testRandom(side === 'users' ? 7 : 8);
  return Array.from({ length: rows }, () =>
    Float64Array.from({ length: FEATURES[side] }, (_, j) =>
      j === 0 ? 1 : random() < 0.3 ? Math.fround(2 * random() - 0.5) : 0,
    ),
  );
}

function sparse(rows: readonly Float64Array[]): AttributeMatrix {
  const entries = rows.flatMap((row, u) =>
    [...row].flatMap((value, j) => (value === 0 ? [] : [{ u, j, value }])),
  );
  const offsets = sharedArray(Int32Array, rows.length + 1);
  for (const { u } of entries) offsets[u + 1]++;
  for (let u = 0; u < rows.length; u++) offsets[u + 1] += offsets[u];
  const [indices, values] = [
    sharedArray(Uint32Array, entries.length),
    sharedArray(Float32Array, entries.length),
  ];
  entries.forEach(({ j, value }, k) => ([indices[k], values[k]] = [j, value]));
  return { rows: rows.length, features: rows[0].length, offsets, indices, values };
}

interface Fitted {
  readonly model: Model;
  readonly raw: AlsStart;
}

async function fit(
  options: AlsOptions,
  attributed: readonly Side[],
  {
    on = session,
    start,
    rows = ratings,
    ...more
  }: { on?: Session; start?: AlsStart; rows?: readonly Triple[] } & FitOptions = {},
): Promise<Fitted> {
  let raw: AlsStart | undefined;
  const of = (side: Side) => (ids: KeyColumn) =>
    Promise.resolve(sparse(denseAttributes(side, keyCount(ids))));
  const given: ContinuedFit = {
    ...more,
    continued: {
      attributes: Object.fromEntries(attributed.map((side) => [side, of(side)])),
      start,
      kept: (factors) => (raw = factors),
    },
  };
  const model = await new ALS({ seed: 3, attributeRegParam: MU, ...options }).fit(
    on.from(ratingBatches(rows, 97)),
    given,
  );
  return { model, raw: raw! };
}

/** A row of the ratings of one side: the other side's row, and the value. */
interface Rated {
  readonly other: number;
  readonly rating: number;
}

/** The training in float64, by dense systems. Implicit data have the weights of Spark, or of iALS. */
class Reference {
  readonly x: Record<Side, Float64Array[]>;
  readonly bias: Record<Side, Float64Array>;
  readonly coefficients: Record<Side, Float64Array[]>;
  readonly attributes: Record<Side, Float64Array[]>;
  readonly rated: Record<Side, Rated[][]>;
  readonly mean: number;
  readonly options: AlsOptions & { readonly rank: number; readonly regParam: number };

  readonly mu: number;

  /** `by`: the number by which ratings are multiplied. */
  constructor(options: Reference['options'], attributed: readonly Side[], start: AlsStart, by = 1) {
    this.options = options;
    this.mu = options.regParam * MU;
    const ids = { users: idsOf('user'), items: idsOf('item') };
    const rated = (own: 'user' | 'item', other: 'user' | 'item') =>
      ids[`${own}s`].map((id) =>
        ratings
          .filter((row) => row[own] === id)
          .map((row) => ({ other: ids[`${other}s`].indexOf(row[other]), rating: by * row.rating })),
      );
    this.rated = { users: rated('user', 'item'), items: rated('item', 'user') };
    this.mean = options.biases
      ? (by * ratings.reduce((sum, { rating }) => sum + rating, 0)) / ratings.length
      : 0;
    const { rank } = options;
    const rowsOf = (side: Side) =>
      ids[side].map((_, u) => Float64Array.from(start[side].values.subarray(u * rank, (u + 1) * rank)));
    this.x = { users: rowsOf('users'), items: rowsOf('items') };
    this.bias = { users: new Float64Array(ids.users.length), items: new Float64Array(ids.items.length) };
    const none = (side: Side) => (attributed.includes(side) ? FEATURES[side] : 0);
    this.attributes = {
      users: denseAttributes('users', ids.users.length).map((row) => row.subarray(0, none('users'))),
      items: denseAttributes('items', ids.items.length).map((row) => row.subarray(0, none('items'))),
    };
    const zeros = (side: Side) =>
      Array.from({ length: none(side) }, () => new Float64Array(rank + (options.biases ? 1 : 0)));
    this.coefficients = { users: zeros('users'), items: zeros('items') };
  }

  /** Weight of a pair without a rating. */
  get unobserved(): number {
    return this.options.unobservedWeight ?? 1;
  }

  /** The constant term of a rating's target. */
  get base(): number {
    return this.options.unobservedWeight === undefined ? 1 : 0;
  }

  /** λ n^ν of factors, and λ n + d of biases. */
  shift(side: Side, n: number): [number, number] {
    const { regParam, regExponent = 1, biasDamping = 0, unobservedWeight = 0 } = this.options;
    const others = this.x[side === 'users' ? 'items' : 'users'].length;
    return [
      regParam * (n + unobservedWeight * others) ** regExponent,
      regParam * n + (biasDamping as number),
    ];
  }

  /** What the attributes predict: the factors, and with biases the bias. */
  prior(side: Side, row: number): Float64Array {
    const { rank, biases } = this.options;
    return Float64Array.from({ length: rank + (biases ? 1 : 0) }, (_, k) =>
      this.attributes[side][row].reduce((sum, f, j) => sum + f * this.coefficients[side][j][k], 0),
    );
  }

  iterate(): void {
    for (const side of ['items', 'users'] as const) {
      this.rated[side].forEach((_, row) => this.#solve(side, row));
      this.#fit(side);
    }
  }

  #solve(side: Side, row: number): void {
    const { rank, biases = false, implicitPrefs = false, alpha } = this.options;
    const other = side === 'users' ? 'items' : 'users';
    const { unobserved, base } = this;
    const unknowns = rank + (biases ? 1 : 0);
    const a = Array.from({ length: unknowns }, () => new Float64Array(unknowns + 1));
    const add = (theta: ArrayLike<number>, weight: number, target: number) => {
      for (let i = 0; i < unknowns; i++) {
        for (let j = 0; j < unknowns; j++) a[i][j] += weight * theta[i] * theta[j];
        a[i][unknowns] += target * theta[i];
      }
    };
    if (implicitPrefs) for (const theta of this.x[other]) add(theta, unobserved, 0);
    const list = this.rated[side][row];
    for (const { other: v, rating } of list) {
      const weight = (alpha as number) * rating;
      if (implicitPrefs) add(this.x[other][v], weight, base + weight);
      else add([...this.x[other][v], 1], 1, rating - this.mean - this.bias[other][v]);
    }
    const [shift, own] = this.shift(side, list.length);
    this.prior(side, row).forEach((value, i) => {
      a[i][i] += i < rank ? shift : own;
      a[i][unknowns] += (i < rank ? shift : own) * value;
    });
    const solved = eliminate(a, unknowns);
    this.x[side][row] = solved.slice(0, rank);
    if (biases) this.bias[side][row] = solved[rank];
  }

  #fit(side: Side): void {
    const features = this.coefficients[side].length;
    const { rank, biases } = this.options;
    for (let k = 0; k < rank + (biases ? 1 : 0); k++) {
      const a = Array.from({ length: features }, () => new Float64Array(features + 1));
      for (let i = 0; i < features; i++) a[i][i] = this.mu;
      this.attributes[side].forEach((f, row) => {
        const d = this.shift(side, this.rated[side][row].length)[k < rank ? 0 : 1];
        const x = k < rank ? this.x[side][row][k] : this.bias[side][row];
        for (let i = 0; i < features; i++) {
          for (let j = 0; j < features; j++) a[i][j] += d * f[i] * f[j];
          a[i][features] += d * f[i] * x;
        }
      });
      eliminate(a, features).forEach((value, j) => (this.coefficients[side][j][k] = value));
    }
  }

  loss(): number {
    const { rank, implicitPrefs, alpha } = this.options;
    let sum = 0;
    const dot = (u: number, v: number) =>
      this.x.users[u].reduce((all, value, k) => all + value * this.x.items[v][k], 0);
    this.rated.users.forEach((list, u) => {
      if (implicitPrefs) this.x.items.forEach((_, v) => (sum += this.unobserved * dot(u, v) ** 2));
      for (const { other: v, rating } of list) {
        const error = rating - this.mean - this.bias.users[u] - this.bias.items[v] - dot(u, v);
        sum += implicitPrefs
          ? (this.base + (alpha as number) * rating) * (1 - dot(u, v)) ** 2 - this.base * dot(u, v) ** 2
          : error ** 2;
      }
    });
    for (const side of sides) {
      this.rated[side].forEach((list, row) => {
        const [shift, own] = this.shift(side, list.length);
        this.prior(side, row).forEach((value, k) => {
          const x = k < rank ? this.x[side][row][k] : this.bias[side][row];
          sum += (k < rank ? shift : own) * (x - value) ** 2;
        });
      });
      for (const row of this.coefficients[side]) for (const value of row) sum += this.mu * value ** 2;
    }
    return sum;
  }

  /** Takes the factors and coefficients of a training, which divided the ratings by `unit`. */
  take(raw: AlsStart, unit = 1): this {
    const { rank } = this.options;
    for (const side of sides) {
      const { values, bias, coefficients } = raw[side];
      this.x[side].forEach((row, u) =>
        row.set(values.subarray(u * rank, (u + 1) * rank).map((x) => Math.sqrt(unit) * x)),
      );
      if (bias) this.bias[side].set(bias.map((value) => unit * value));
      this.coefficients[side].forEach((row, j) => {
        row.set(coefficients!.values.subarray(j * rank, (j + 1) * rank).map((x) => Math.sqrt(unit) * x));
        if (coefficients!.bias) row[rank] = unit * coefficients!.bias[j];
      });
    }
    return this;
  }
}

function idsOf(column: 'user' | 'item'): number[] {
  return [...new Set(ratings.map((row: Triple) => row[column]))].sort((left, right) => left - right);
}

/** Random users, and items of zeros. */
function startOf(rank: number, biases: boolean): AlsStart {
  const random = testRandom(5);
  const of = (side: 'user' | 'item') => {
    const rows = idsOf(side).length;
    const values = sharedArray(Float32Array, rows * rank);
    if (side === 'user') for (let k = 0; k < values.length; k++) values[k] = random();
    return { values, ...(biases && { bias: sharedArray(Float32Array, rows) }) };
  };
  return { users: of('user'), items: of('item') };
}

function apart(left: readonly ArrayLike<number>[], right: readonly ArrayLike<number>[]): number {
  let [difference, size] = [0, 0];
  left.forEach((row, u) =>
    Array.from(row).forEach((value, k) => {
      difference += (value - right[u][k]) ** 2;
      size += right[u][k] ** 2;
    }),
  );
  return Math.sqrt(difference / size);
}

const problems = {
  explicit: { biases: false, regParam: 0.05 },
  'explicit with an exponent': { biases: false, regParam: 0.3, regExponent: 0.5 },
  'with biases': { biases: true, regParam: 0.05, regOffset: 0, biasDamping: 3 },
  implicit: { implicitPrefs: true, weight: 'spark', alpha: 0.7, regParam: 0.2, regExponent: 1 },
  'implicit with the weights of iALS': {
    implicitPrefs: true,
    weight: 'spark',
    alpha: 0.7,
    unobservedWeight: 0.1,
    regParam: 0.05,
    regExponent: 0.8,
  },
} as const satisfies Record<string, AlsOptions>;

describe.each(Object.entries(problems))('%s', (_name, problem) => {
  it.each([
    [['users', 'items'], 3],
    [['items'], 10],
    [['users'], 5],
    [[], 4],
  ] as const)('with attributes of %j, rank %i, equals the training in float64', async (attributed, rank) => {
    for (const solver of ['cholesky', 'cg'] as const) {
      const options = {
        ...problem,
        rank,
        solver,
        cgSteps: solver === 'cg' ? 40 : 'auto',
        maxIter: 4,
      } as const;
      const start = startOf(rank, 'biases' in problem && problem.biases);
      const { model, raw } = await fit(options, attributed, { start });
      const twin = new Reference(options, attributed, start);
      const losses = Array.from({ length: 4 }, () => (twin.iterate(), twin.loss()));
      const found = new Reference(options, attributed, start).take(raw);
      for (const side of sides) {
        expect(apart(found.x[side], twin.x[side]), side).toBeLessThan(2e-3);
        if (attributed.some((one) => one === side))
          expect(apart(found.coefficients[side], twin.coefficients[side]), side).toBeLessThan(5e-3);
      }
      const reported = model.training!.iterations.map(({ loss }) => loss);
      reported.forEach((loss, k) => expect(loss / losses[k], `${solver} ${k}`).toBeCloseTo(1, 4));
      expect(reported.at(-1)! / found.loss()).toBeCloseTo(1, 5);
    }
  });

  it('never raises its objective', async () => {
    const { model } = await fit({ ...problem, rank: 6, solver: 'cholesky', maxIter: 12 }, sides);
    const losses = model.training!.iterations.map(({ loss }) => loss);
    losses.slice(1).forEach((loss, k) => expect(loss).toBeLessThan(losses[k] * (1 + 1e-6)));
  });

  it('gives the same bits for any number of threads', async () => {
    const options = { ...problem, rank: 12, maxIter: 3 };
    const one = await fit(options, sides, { on: await cpuSession({ workers: 1 }) });
    const three = await fit(options, sides, { on: await cpuSession({ workers: 3 }) });
    expect(three.raw).toEqual(one.raw);
  });
});

describe.skipIf(noGpu)('on a GPU', () => {
  let gpu: Session;
  beforeAll(async () => {
    gpu = await Session.create({ device: 'gpu', workers: 1 });
  });
  afterAll(() => gpu?.close());

  const cases = [
    ['explicit', [], 'f32'],
    ['explicit', sides, 'f32'],
    ['explicit', ['items'], 'f16'],
    ['with biases', sides, 'f32'],
    ['with biases', ['users'], 'f32'],
    ['implicit', sides, 'f32'],
    ['implicit with the weights of iALS', ['items'], 'f32'],
  ] as const;
  it.each(
    cases.flatMap(([name, attributed, precision]) =>
      (['cholesky', 'cg'] as const).map((solver) => ({ name, attributed, precision, solver })),
    ),
  )('$name, $attributed, $precision, $solver, equals the training in float64', async (of) => {
    const { name, attributed, precision, solver } = of;
    const problem: AlsOptions = problems[name];
    const options = {
      ...problems[name],
      rank: 9,
      solver,
      cgSteps: solver === 'cg' ? 40 : 'auto',
      maxIter: 3,
    } as const;
    const start = startOf(options.rank, problem.biases ?? false);
    const { model, raw } = await fit({ ...options, precision }, attributed, { start, on: gpu });
    expect(model.training!.plan!.devices.some(({ kind }) => kind === 'gpu')).toBe(true);
    const twin = new Reference(options, attributed, start);
    const losses = Array.from({ length: 3 }, () => (twin.iterate(), twin.loss()));
    const found = new Reference(options, attributed, start).take(raw);
    const factor = precision === 'f16' ? 10 : 1;
    for (const side of sides) {
      expect(apart(found.x[side], twin.x[side]), side).toBeLessThan(factor * 2e-3);
      if (attributed.some((one) => one === side))
        expect(apart(found.coefficients[side], twin.coefficients[side]), side).toBeLessThan(factor * 5e-3);
    }
    const reported = model.training!.iterations.map(({ loss }) => loss);
    reported.forEach((loss, k) => expect(Math.abs(loss / losses[k] - 1), `${k}`).toBeLessThan(factor * 1e-4));
    expect(Math.abs(reported.at(-1)! / found.loss() - 1)).toBeLessThan(factor * 1e-5);
  });

  it.each([
    ['explicit', { biases: true }],
    ['implicit', { implicitPrefs: true }],
  ])('trains %s data from drawn factors as a CPU, and continues from a checkpoint', async (name, kind) => {
    const options = { ...kind, rank: 5, maxIter: 4, solver: 'cholesky' } as const;
    const checkpointDir = join(folder, `gpu-${name}`);
    const whole = await fit(options, sides, { on: gpu });
    const { raw: onCpu } = await fit(options, sides);
    await fit({ ...options, maxIter: 2 }, sides, { on: gpu, checkpointDir });
    const resumed = await fit(options, sides, { on: gpu, checkpointDir, resume: true });
    expect(resumed.model.training!.iterations.length).toBe(4);
    expect(resumed.raw).toEqual(whole.raw);
    for (const side of sides) {
      expect(apart([whole.raw[side].values], [onCpu[side].values]), side).toBeLessThan(1e-3);
      const [own, other] = [whole, { raw: onCpu }].map(({ raw }) => raw[side].coefficients!.values);
      expect(apart([own], [other]), side).toBeLessThan(1e-3);
    }
  });
});

describe('ALS with attributes', () => {
  const options = { rank: 5, maxIter: 5, regParam: 0.05, solver: 'cholesky' } as const;
  const vertical = { partitionUsers: '2,3', partitionItems: '3,2' } as const;

  it('has λ and μ in the unit of the ratings, of any size', async () => {
    const sized = (by: number) => ratings.map((row) => ({ ...row, rating: by * row.rating }));
    const train = (by: number, biases: boolean) =>
      fit(
        {
          ...options,
          biases,
          regOffset: 0,
          ...(biases && { biasDamping: 0 }),
          regParam: by * 0.05,
        },
        sides,
        { start: startOf(5, biases), rows: sized(by) },
      );
    // The training divides them by 1,024 and by 4,096; with biases by 256.
    const [small, large] = [await train(256, false), await train(1024, false)];
    expect(large.raw).toEqual(small.raw);
    const { model, raw } = await train(256, true);
    const own = { ...options, biases: true, regParam: 256 * 0.05 };
    const found = new Reference(own, sides, startOf(5, true), 256).take(raw, 256);
    expect(model.training!.iterations.at(-1)!.loss / found.loss()).toBeCloseTo(1, 4);
  });

  it.each([
    ['two CPUs', 'cpu', {}],
    ['two CPUs, implicit data', 'cpu', { implicitPrefs: true }],
    ['one CPU, in parts', 'parts', {}],
    ['one CPU, in parts, implicit data', 'parts', { implicitPrefs: true }],
    ['one CPU, in vertical parts', 'parts', { biases: true, ...vertical }],
    ['two CPUs, in vertical parts, implicit data', 'cpu', { implicitPrefs: true, ...vertical }],
    ['two GPUs', 'gpu', { biases: true }],
    ['two GPUs, implicit data', 'gpu', { implicitPrefs: true }],
    ['two GPUs, in float16', 'gpu', { precision: 'f16', kernel: 'tiled4-f16' }],
    ['two GPUs, in vertical parts', 'gpu', { biases: true, ...vertical }],
    ['two GPUs, in vertical parts, implicit data', 'gpu', { implicitPrefs: true, ...vertical }],
  ] as const)('gives the same on %s', async (_, device, kind) => {
    if (device === 'gpu' && noGpu) return;
    const parts = { partitionUsers: '1,3', partitionItems: '1,2' };
    const { kernel, precision, partitionUsers, partitionItems, ...alike }: AlsOptions = { ...parts, ...kind };
    const own = { ...options, biases: false, ...alike };
    await using on = await Session.create(
      device === 'gpu'
        ? { device, workers: 1, fakeDevices: 2 }
        : { device: 'cpu', ...(device === 'cpu' && { fakeDevices: 2 }) },
    );
    const one = await fit(own, sides);
    const several = await fit(
      { ...own, kernel, ...(precision && { precision }), partitionUsers, partitionItems },
      sides,
      { on },
    );
    expect(several.model.training!.plan!.devices.length).toBe(
      device === 'parts' ? 1 : device === 'cpu' ? 2 : 3,
    );
    const most = precision === 'f16' ? 2e-2 : 1e-3;
    for (const side of sides) {
      expect(apart([several.raw[side].values], [one.raw[side].values]), side).toBeLessThan(most);
      const [left, right] = [several, one].map(({ raw }) => raw[side].coefficients!.values);
      expect(apart([left], [right]), side).toBeLessThan(most);
    }
    const losses = [several, one].map(({ model }) => model.training!.iterations.at(-1)!.loss);
    expect(Math.abs(losses[0] / losses[1] - 1)).toBeLessThan(most / 10);
  });

  it('takes the coefficients of the best iteration', async () => {
    const validation = session.from(ratingBatches(randomRatings(52, 60, 40, 300)));
    const stopping = { ...options, biases: false, regParam: 0.001, maxIter: 15 };
    const { model, raw } = await fit({ ...stopping, earlyStop: 2 }, sides, { validation });
    const { bestIteration } = model.training!;
    expect(bestIteration).toBeLessThan(model.training!.iterations.length);
    const { raw: best } = await fit({ ...stopping, maxIter: bestIteration }, sides);
    expect(raw).toEqual(best);
  });

  it('continues from a checkpoint with the same bits', async () => {
    const own = { ...options, biases: true };
    const checkpointDir = join(folder, 'checkpoints');
    await fit({ ...own, maxIter: 2 }, sides, { checkpointDir });
    const resumed = await fit(own, sides, { checkpointDir, resume: true });
    const whole = await fit(own, sides);
    expect(resumed.raw).toEqual(whole.raw);
    expect(resumed.model.training!.iterations.length).toBe(5);
  });

  it('refuses to continue from a checkpoint of a training with other attributes', async () => {
    const checkpointDir = join(folder, 'others');
    await fit({ ...options, maxIter: 2 }, sides, { checkpointDir });
    for (const others of [['items'], []] as const)
      await expect(fit(options, others, { checkpointDir, resume: true })).rejects.toThrow(
        'other attributes of users or items',
      );
  });

  it('gives coefficients whose products with features are rows of the model', () => {
    const coefficients = { users: { values: Float32Array.of(1, 2, 3, 4), bias: Float32Array.of(5, 6) } };
    const found = modelCoefficients({ users: [], items: [], coefficients }, 2, 10, 4);
    // √4 times the factors, 4 times the biases, and μ and 1 of each row with the constant feature.
    expect(found.users).toEqual({
      features: 2,
      columns: 4,
      values: Float32Array.of(2, 4, 30, 1, 6, 8, 24, 0),
    });
    const items = { items: coefficients.users };
    expect(modelCoefficients({ users: [], items: [], coefficients: items }, 2, 10, 4).items!.values).toEqual(
      Float32Array.of(2, 4, 1, 20, 6, 8, 0, 24),
    );
    const plain = { items: { values: Float32Array.of(1, 2, 3, 4) } };
    expect(modelCoefficients({ users: [], items: [], coefficients: plain }, 2, undefined, 1)).toEqual({
      items: { features: 2, columns: 2, values: plain.items.values },
    });
  });

  it('is close to a training without, where attributes say nothing', async () => {
    const own = { rank: 5, maxIter: 8, biases: true, regParam: 0.05 } as const;
    const constant = (ids: KeyColumn) =>
      Promise.resolve(sparse(Array.from({ length: keyCount(ids) }, () => Float64Array.of(1))));
    const train = (continued: ContinuedFit['continued']) =>
      new ALS({ seed: 3, ...own }).fit(session.from(ratingBatches(ratings)), { continued } as FitOptions);
    const [plain, drawn] = [
      await train({}),
      await train({ attributes: { users: constant, items: constant } }),
    ];
    const [one, other] = [plain, drawn].map((model) => model.training!.iterations.at(-1)!.trainRmse!);
    expect(other / one).toBeGreaterThan(0.98);
    expect(other / one).toBeLessThan(1.02);
  });

  it('refuses attributes of another number of rows', async () => {
    const one = () => Promise.resolve(sparse([Float64Array.of(1)]));
    const given = { continued: { attributes: { items: one } } } as FitOptions;
    await expect(new ALS(options).fit(session.from(ratingBatches(ratings)), given)).rejects.toThrow(
      'the attributes of items: 1 rows for 40 items',
    );
  });
});
