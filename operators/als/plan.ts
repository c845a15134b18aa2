import type { PlanDevices } from '../../engine/run/devices.ts';
import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import { counted, formatBytes } from '../../engine/format.ts';
import type { JsonObject } from '../../engine/json.ts';
import { type LoadStage, PLAN_VERSION, type PhysicalPlan, unbound } from '../../engine/plan/physical-plan.ts';
import type { DataPart, DataSet, DataUses, Stage } from '../../engine/plan/stages.ts';
import { peakOf } from '../../engine/run/walk.ts';
import { HOST, type Place } from '../../engine/plan/place.ts';
import { loadStages } from '../planner/load-stages.ts';
import type { RatingsProfile } from '../planner/profile.ts';
import { blockBytes, factorBytes, factorStride, spilledLoadingBytes, requireBindings, requireDeviceFit } from '../planner/sizes.ts';
import { evenRanges, taskCount } from '../ratings/row-ranges.ts';
import { contracts, type KernelChoice, type RowRegularization } from '../tasks/tasks.ts';
import { measureStages } from '../training/loss.ts';
import type { AlsChoices } from './kernel-choices.ts';
import { forSides } from '../params/table.ts';
import { gramStage, implicitDataSets, implicitMeasure, implicitUses, testPlaces } from './implicit/stages.ts';
import { implicitWeights } from './implicit/weights.ts';
import type { AlsParams } from './params.ts';
import { rankingMetricOf, rankingReasons } from '../params/common.ts';
import { chooseSolver } from './solver-choice.ts';

/** The names of the data sets of a side. `whole`: all its rows, on every device; with one device the side itself. */
export function sideNames(side: 'users' | 'items', devices: number, biases: boolean) {
  const whole = devices > 1 ? `${side}-all` : side;
  return { factors: side, bias: biases ? `${side}-bias` : undefined, whole, wholeBias: biases ? (devices > 1 ? `${side}-bias-all` : `${side}-bias`) : undefined, keys: `${side}-keys`, ratings: side === 'users' ? 'ratings-by-user' : 'ratings-by-item' };
}

/**
 * The physical plan of ALS: a pure function of profile, parameters and devices. Model parallelism (cuMF, section 4.2): Θ whole on
 * each of q devices, X in q parts, p = 1; with several devices the parts of a side are gathered on all of them after each
 * half-iteration. Throws CapacityError when it does not fit, before anything is allocated.
 */
export function planAls(profile: RatingsProfile, params: AlsParams, devices: PlanDevices, choices?: AlsChoices, { anchored = false }: { readonly anchored?: boolean } = {}): PhysicalPlan {
  const { users: m, items: n, ratings: nz } = profile;
  const { implicitPrefs } = params;
  // Implicit data have no test error; a validation set serves rankings.
  const testRatings = implicitPrefs && rankingMetricOf(params) === undefined ? undefined : profile.testRatings;
  const { host } = devices;
  // Every device has rows of both sides.
  const compute = devices.compute.slice(0, Math.max(1, Math.min(m, n)));
  const [device] = compute;
  const f = params.rank;
  const q = compute.length;
  const solver = chooseSolver(params, device.kind);
  const datasets = alsDataSets({ ...profile, testRatings }, params, compute);
  const places = compute.map(({ place }) => place);
  const tasks = (rows: number, ratings: number) => (device.wholePasses ? 1 : Math.min(Math.ceil(rows / q), taskCount(Math.ceil(ratings / q))));
  const [users, items] = (['users', 'items'] as const).map((side) => sideNames(side, q, params.biases));
  const damping = forSides(params.biasDamping);
  const of = (side: 'users' | 'items'): RowRegularization => ({ lambda: params.regParam, ...(params.regExponent === 1 ? {} : { exponent: params.regExponent }), ...(params.biases && damping[side] > 0 ? { damping: damping[side] } : {}) });
  const regularization = { 'update-users': of('users'), 'update-items': of('items') };
  const halfIteration = (name: 'update-users' | 'update-items', solved: typeof users, fixed: typeof users, [rows, others]: readonly [number, number], choice: KernelChoice | undefined, reasons: readonly string[]): Stage => {
    const uses: DataUses = {
      block: solved.ratings,
      fixed: fixed.whole,
      previous: `${solved.factors}@old`,
      factors: solved.factors,
      ...(implicitPrefs ? implicitUses(solved.factors, fixed.factors) : {}),
      ...(solved.bias && fixed.wholeBias ? { fixedBias: fixed.wholeBias, bias: solved.bias } : {}),
    };
    const kernel = choice && { variant: choice.variant, precision: choice.precision, ratingScale: choice.ratingScale };
    const task = implicitPrefs ? 'update-implicit' : 'update';
    const weights = implicitPrefs ? { ...implicitWeights(params), ...(anchored ? { anchored } : {}) } : regularization[name];
    const taskParams: JsonObject = { rank: f, ...weights, cgBelow: solver.cgBelow, cgSteps: solver.cgSteps, nonnegative: params.nonnegative, ...kernel };
    return {
      name,
      at: places,
      work: { kind: 'tasks', tasks: [{ kernel: task, uses, params: taskParams }] },
      kernel: [task, choice?.variant, solver.kernel].filter((part) => part !== undefined).join(' '),
      tasks: tasks(rows, nz),
      partitions: { p: 1, q },
      bytesRead: blockBytes(rows, nz) + q * factorBytes(others, f, device.strideStep),
      bytesWritten: factorBytes(rows, f, device.strideStep),
      flops: nz * f * (f + 1),
      ...(device.ownMemory || q > 1 ? {} : { exchange: 'shared memory' }),
      ...(choice === undefined ? {} : { heldBytes: Math.ceil(choice.deviceBytes / q) }),
      reasons,
    };
  };
  const gather = (side: typeof users, rows: number): Stage[] =>
    q === 1 ? [] : [{
      name: `gather-${side.factors}`,
      at: places,
      work: { kind: 'exchange', how: 'all-gather', data: [side.factors, ...(side.bias ? [side.bias] : [])], to: [side.whole, ...(side.wholeBias ? [side.wholeBias] : [])] },
      exchange: `all-gather: ${formatBytes(4 * rows * f)} down, ${formatBytes(4 * q * rows * f)} up`,
    }];
  const gram = (side: 'users' | 'items', rows: number): Stage[] => (implicitPrefs ? [gramStage(side, (side === 'users' ? users : items).whole, rows, params, places, device.wholePasses)] : []);
  const absolute = params.nonnegative || params.start === 'level';
  const zeros = [items.factors, ...(users.bias && items.bias ? [users.bias, items.bias] : [])];
  const start: Stage[] = [
    { name: 'place-ratings', at: places, work: { kind: 'exchange', how: 'move', data: ['ratings-by-user', 'ratings-by-item', ...(testRatings === undefined ? [] : ['test-ratings']), ...(implicitPrefs ? ['users-shifts', 'items-shifts'] : [])], to: 'places' }, ...(device.ownMemory ? { exchange: `${formatBytes(ratingBytes(profile))} up` } : {}) },
    { name: 'initialize', at: compute.map(() => host.place), work: { kind: 'tasks', tasks: [{ kernel: 'initialize', uses: { keys: users.keys, factors: users.factors }, params: { rank: params.rank, seed: params.seed, nonnegative: absolute } }] }, kernel: 'initialize', tasks: Math.min(m, taskCount(nz)), bytesWritten: factorBytes(m, f), reasons: [`items are solved first, from unit-norm ${absolute ? 'absolute ' : ''}Gaussian user factors keyed by seed and external id`] },
    { name: 'allocate', at: places, work: { kind: 'allocate', data: zeros } },
    ...gather(users, m),
    ...gram('users', m),
  ];
  const round = [
    halfIteration('update-items', items, users, [n, m], choices?.items, [solver.reason, ...(choices ? [choices.items.reason] : [])]),
    ...gather(items, n),
    ...gram('items', n),
    halfIteration('update-users', users, items, [m, n], choices?.users, choices ? [choices.users.reason] : []),
    ...gather(users, m),
    // That of the new users serves the loss and the next round.
    ...gram('users', m),
  ];
  const biases: DataUses = users.bias && items.wholeBias ? { rowBias: users.bias, columnBias: items.wholeBias } : {};
  const errors = (name: string, block: string, ratings: number): Stage => ({
    name,
    at: places,
    work: { kind: 'tasks', tasks: [{ kernel: 'squared-error', uses: { block, rowFactors: users.factors, columnFactors: items.whole, ...biases }, params: { rank: f } }] },
    kernel: 'squared-error',
    tasks: tasks(m, ratings),
    partitions: { p: 1, q },
    bytesRead: blockBytes(m, ratings),
    flops: 2 * ratings * f,
  });
  const norm = (name: string, side: typeof users, rows: number): Stage => ({ name, at: places, work: { kind: 'tasks', tasks: [{ kernel: 'weighted-norm', uses: { block: side.ratings, factors: side.factors }, params: { rank: f, ...(params.regExponent === 1 ? {} : { exponent: params.regExponent }) } }] }, kernel: 'weighted-norm', tasks: tasks(rows, nz) });
  const measure = implicitPrefs ? implicitMeasure(params, items.whole, places, { users: tasks(m, nz), items: tasks(n, nz) }, nz, testRatings === undefined ? undefined : { users: m, whole: device.wholePasses }) : [
    errors(measureStages.train, 'ratings-by-user', nz),
    norm(measureStages.users, users, m),
    norm(measureStages.items, items, n),
    ...(testRatings === undefined ? [] : [errors(measureStages.test, 'test-ratings', testRatings)]),
    ...(users.bias && items.bias ? [{ name: 'fetch-biases', at: places, work: { kind: 'exchange', how: 'move', data: [users.bias, items.bias], to: 'host' } } satisfies Stage] : []),
  ];
  const end: Stage[] = [{ name: 'fetch-factors', at: places, work: { kind: 'exchange', how: 'move', data: [users, items].flatMap(({ factors, bias }) => [factors, ...(bias ? [bias] : [])]), to: 'host' } }];
  const plan: Omit<PhysicalPlan, 'memory'> = {
    planVersion: PLAN_VERSION,
    algorithm: 'als',
    problem: describeProblem(profile, params),
    sizes: { users: m, items: n, ratings: nz, ...(testRatings === undefined ? {} : { testRatings }) },
    params: { ...params },
    choices: { ...choices },
    devices: compute.includes(host) ? compute : [...compute, host],
    datasets,
    load: alsLoadStages(profile, host.place),
    start,
    round,
    measure,
    end,
    rounds: params.maxIter,
    keep: { start: false, best: params.earlyStop !== undefined },
    reasons: [
      ...(implicitPrefs ? [] : rankingReasons(params, 'iteration')),
      `p = 1: Θ whole on ${q === 1 ? 'the device' : `each of ${q} devices`}, eq. 8 without the f² terms: A is solved in place`,
      ...(params.biases ? [`biases: eliminated from the normal equations, which keep f features and give factors and biases at once${params.nonnegative ? '; factors are kept >= 0, biases are not' : ''}`] : []),
      ...deviceReasons(device, f, tasks(m, nz)),
    ],
  };
  requireBindings(plan, { [counted(nz, 'rating')]: Math.ceil((4 * nz) / q) });
  const peak = peakOf(unbound(plan), contracts, plan.keep);
  const whole: PhysicalPlan = { ...plan, memory: { ...peak, [HOST]: Math.max(spilledLoadingBytes(nz) + (testRatings === undefined ? 0 : blockBytes(m, testRatings)), peak[HOST] ?? 0) + (device.ownMemory ? 2 * 4 * f * (m + n) : 0) } };
  requireDeviceFit(whole, 'SGD, whose blocks are staged where they do not fit');
  return whole;
}

function ratingBytes({ users, items, ratings, testRatings }: RatingsProfile): number {
  return blockBytes(users, ratings) + blockBytes(items, ratings) + (testRatings === undefined ? 0 : blockBytes(users, testRatings));
}

function alsLoadStages(profile: RatingsProfile, place: Place): LoadStage[] {
  const { users: m, items: n, ratings: nz } = profile;
  return loadStages(profile, place, { kernel: 'counting sort, transpose', bytesWritten: blockBytes(m, nz) + blockBytes(n, nz), reasons: [] });
}

/** Rows of both sides and blocks of ratings in as many parts as there are devices. The cuts are even until the data are known. */
function alsDataSets({ users: m, items: n, ratings: nz, testRatings }: RatingsProfile, params: AlsParams, compute: readonly DeviceInfo[]): DataSet[] {
  const f = params.rank;
  const q = compute.length;
  const parts = (rows: number, part: (rows: number, place: Place) => DataPart): DataPart[] => {
    const ranges = evenRanges(rows, q);
    return compute.map(({ place }, j) => part((ranges[j]?.to ?? 0) - (ranges[j]?.from ?? 0), place));
  };
  const ratings = (name: string, rows: number, count: number): DataSet => ({ name, layout: 'rating-block', given: true, parts: parts(rows, (own, place) => ({ rows: own, bytes: blockBytes(own, Math.ceil(count / q)), at: [HOST, place] })) });
  const sides = ([['users', m], ['items', n]] as const).flatMap(([side, rows]): DataSet[] => {
    const names = sideNames(side, q, params.biases);
    const own = parts(rows, (count, place) => ({ rows: count, at: [place] }));
    const all: DataPart[] = [{ rows, at: compute.map(({ place }) => place) }];
    return [
      { name: names.factors, layout: 'factors', columns: f, parts: own },
      ...(names.bias ? [{ name: names.bias, layout: 'bias', columns: 1, parts: own }] : []),
      ...(q > 1 ? [{ name: names.whole, layout: 'factors', columns: f, derived: true, parts: all }] : []),
      ...(q > 1 && names.wholeBias ? [{ name: names.wholeBias, layout: 'bias', columns: 1, derived: true, parts: all }] : []),
    ];
  });
  return [
    ratings('ratings-by-user', m, nz),
    ratings('ratings-by-item', n, nz),
    ...(testRatings === undefined ? [] : [ratings('test-ratings', m, testRatings)]),
    { name: 'users-keys', layout: 'key-hashes', given: true, parts: parts(m, (own) => ({ rows: own, bytes: 8 * own, at: [HOST] })) },
    ...sides,
    ...(params.implicitPrefs ? implicitDataSets(f, { users: m, items: n }, compute.map(({ place }) => place), parts) : []),
    ...(params.implicitPrefs && testRatings !== undefined ? [testPlaces(compute.map(({ place }) => ({ rows: Math.ceil(testRatings / q), bytes: 4 * Math.ceil(testRatings / q), at: [place] })), !compute[0].wholePasses)] : []),
  ];
}

function deviceReasons({ ownMemory, wholePasses, strideStep }: DeviceInfo, f: number, tasks: number): string[] {
  return [
    `${f} features are stored with a stride of ${factorStride(f, strideStep)} floats (whole ${strideStep === 8 ? '256-bit groups' : `tiles of ${strideStep}`}; padding is 0)`,
    ...(ownMemory ? ['the start is drawn on the CPU, the same bits as without a GPU'] : []),
    wholePasses ? 'a pass over the ratings is one task: the device shares the rows out itself' : `a pass over the ratings is cut into ${tasks} tasks by ratings, the same for any number of threads, which therefore gives the same bits`,
  ];
}

/** "0.05", or "0.05 n^0.5 + 7 σ" with an exponent or an offset. */
function regularizationText({ regParam, regExponent, regOffset, biases, biasDamping }: AlsParams): number | string {
  const { users, items } = forSides(biasDamping);
  const power = regExponent === 1 && regOffset === 0 ? '' : regExponent === 1 ? ' n' : ` n^${regExponent}`;
  const damping = biases && users + items > 0 ? `; biases damped by ${users === items ? users : `${users} and ${items}`} ratings` : '';
  if (power === '' && damping === '') return regParam;
  return `${regParam}${power}${regOffset === 0 ? '' : ` + ${regOffset} σ`}${damping}`;
}

function describeProblem({ users, items, ratings, testRatings }: RatingsProfile, params: AlsParams): JsonObject {
  return {
    'users m': users,
    'items n': items,
    'ratings Nz': ratings,
    ...(testRatings === undefined ? {} : { 'test pairs': testRatings }),
    'rank f': params.biases ? `${params.rank} and biases` : params.rank,
    'λ': params.implicitPrefs ? params.regParam : regularizationText(params),
    ...(params.implicitPrefs ? { 'α': params.alpha, ...(params.unobservedWeight === undefined ? {} : { 'w': params.unobservedWeight }), 'ν': params.regExponent } : {}),
    iterations: params.maxIter,
    seed: params.seed,
  };
}
