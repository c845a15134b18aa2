import { MAXIMUM_FORMED_RANK, metricNeedsEarlyStop, noDamping, rankingMetricOf } from '../params/common.ts';
import type { Rule } from '../params/table.ts';
import type { AlsParams } from './als-params.ts';
import { isExact } from './exact-solver.ts';
import { requestedGrids } from './partitions.ts';

type Named = Parameters<Rule<AlsParams>['message']>[0];

/** Combinations of ALS parameters that are refused. */
export const alsRules: readonly Rule<AlsParams>[] = [
  {
    refused: 'solver',
    when: ({ solver, nonnegative }) => nonnegative && solver === 'cg',
    message: (named) =>
      `${named('solver', 'cg')} cannot be used with ${named('nonnegative')}: conjugate gradients do ` +
      `not keep factors >= 0`,
    advice: 'Leave the solver at auto, or leave nonnegative out',
  },
  {
    refused: 'solver',
    when: ({ solver, rank }) => isExact(solver) && rank > MAXIMUM_FORMED_RANK,
    message: (named, { solver, rank }) =>
      `${named('solver', solver)} cannot be used with ${named('rank', rank)}: exact solvers ` +
      `form a matrix of rank x rank numbers for each row, and end at rank ${MAXIMUM_FORMED_RANK}`,
    advice: `Give solver cg, or a rank of at most ${MAXIMUM_FORMED_RANK}`,
  },
  {
    refused: 'nonnegative',
    when: ({ nonnegative, rank }) => nonnegative && rank > MAXIMUM_FORMED_RANK,
    message: (named, { rank }) =>
      `${named('nonnegative')} cannot be used with ${named('rank', rank)}: its solver is exact, ` +
      `and above rank ${MAXIMUM_FORMED_RANK} there are only conjugate gradients`,
    advice: `Leave nonnegative out, or give a rank of at most ${MAXIMUM_FORMED_RANK}`,
  },
  {
    refused: 'partitionSums',
    when: ({ partitionSums, rank }) =>
      rank > MAXIMUM_FORMED_RANK && partitionSums !== 'auto' && partitionSums !== 'vectors',
    message: (named, { partitionSums, rank }) =>
      `${named('partitionSums', partitionSums)} cannot be used with ${named('rank', rank)}: above ` +
      `${MAXIMUM_FORMED_RANK} no normal equations are formed`,
    advice: 'Give vectors, or leave partitionSums at auto',
  },
  noDamping,
  {
    refused: 'cgSteps',
    when: ({ nonnegative }) => nonnegative,
    message: (named) => `${named('cgSteps')} has no effect with ${named('nonnegative')}`,
    advice: 'Leave one of them out',
    onlyFlags: true,
  },
  {
    refused: 'cgSteps',
    when: ({ solver }) => isExact(solver),
    message: (named, { solver }) => `${named('cgSteps')} has no effect with ${named('solver', solver)}`,
    advice: 'Leave one of them out',
    onlyFlags: true,
  },
  ...(['alpha', 'unobservedWeight', 'weight'] as const).map((refused) => ({
    refused,
    when: ({ implicitPrefs }: AlsParams) => !implicitPrefs,
    message: (named: Named) => `${named(refused)} acts only on implicit data, with ${named('implicitPrefs')}`,
    advice: 'Give both, or leave it out',
  })),
  {
    refused: 'regOffset',
    when: ({ implicitPrefs }) => implicitPrefs,
    message: (named) =>
      `${named('regOffset')} cannot be used with ${named('implicitPrefs')}, whose weights have no ` +
      `standard deviation`,
    advice: 'Leave one of them out',
  },
  {
    refused: 'precision',
    when: ({ precision, implicitPrefs, alpha }) => implicitPrefs && alpha === 0 && precision === 'f16',
    message: (named) =>
      `${named('precision', 'f16')} cannot be used with ${named('alpha', 0)}, whose weights have no ` +
      `roots to divide by`,
    advice: 'Leave the precision at auto',
  },
  {
    refused: 'precision',
    when: ({ precision, implicitPrefs }) => implicitPrefs && precision === 'int8',
    message: (named) =>
      `${named('precision', 'int8')} cannot be used with ${named('implicitPrefs')}, whose weights 8 ` +
      `bits do not hold`,
    advice: 'Leave the precision at auto',
  },
  {
    refused: 'biases',
    when: ({ biases, implicitPrefs }) => implicitPrefs && biases,
    message: (named) =>
      `${named('biases')} cannot be used with ${named('implicitPrefs')}: implicit data have no ` +
      `level to learn`,
    advice: 'Leave one of them out',
  },
  metricNeedsEarlyStop,
  {
    refused: 'earlyStop',
    when: (params) => params.implicitPrefs && rankingMetricOf(params) === undefined,
    message: (named) =>
      `${named('earlyStop')} cannot be used with ${named('implicitPrefs')} on the RMSE, which ` +
      `implicit data do not have`,
    advice: 'Give a ranking metric, such as ndcg@20, as earlyStopMetric',
  },
  {
    refused: 'targetRmse',
    when: ({ implicitPrefs }) => implicitPrefs,
    message: (named) =>
      `${named('targetRmse')} cannot be used with ${named('implicitPrefs')}: implicit data have no test RMSE`,
    advice: 'Leave one of them out',
  },
  {
    refused: 'partitionSums',
    when: ({ partitionSums, nonnegative, solver }) =>
      partitionSums !== 'auto' && partitionSums !== 'equations' && (nonnegative || isExact(solver)),
    message: (named, { partitionSums }) =>
      `${named('partitionSums', partitionSums)} cannot be used with exact solves, which need A`,
    advice: 'Give solver cg without nonnegative, or leave partitionSums at auto',
  },
  {
    refused: 'partitionUsers',
    when: (params) =>
      params.implicitPrefs &&
      rankingMetricOf(params) !== undefined &&
      (requestedGrids(params).users?.p ?? 1) > 1,
    message: (named) =>
      `${named('partitionUsers')} cannot cut the items into vertical parts with ` +
      `${named('earlyStopMetric')}, which ranks all items of implicit data at once`,
    advice: 'Give 1 vertical part, or leave one of them out',
  },
];
