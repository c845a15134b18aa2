import { computeDevice, hostDevice } from '../../../engine/run/devices.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { dataSetName, type Partition, type PartitionRef, sharedArray } from '../../../engine/partition.ts';
import type { Device } from '../../../engine/run/device.ts';
import { runSteps } from '../../../engine/run/run-steps.ts';
import { StepList } from '../../../engine/run/step-list.ts';
import { gramSlices } from '../../als/implicit/stages.ts';
import { rowShifts } from '../../als/implicit/weights.ts';
import { factorStride } from '../../planner/sizes.ts';
import { hostForm, type RatingBlock } from '../../ratings/rating-block.ts';
import { balancedRanges, taskCount } from '../../ratings/row-ranges.ts';
import { addSliced, runTasks } from '../../tasks/run-tasks.ts';
import { contracts } from '../../tasks/tasks.ts';
import type { RowRule } from './row-rule.ts';

const STAGE = 'fold-in';

/**
 * The factors of each row of a block, exactly, with the items' factors held fixed: [x], or with biases [x, β]. The block's values
 * are ratings without μ and γ; its columns are rows of `items` ([θ], with biases [θ, 1]). Runs where training would.
 */
export async function solveUsers(block: RatingBlock, items: Float32Array, allItems: Float32Array, rule: RowRule, ctx: ExecutionContext): Promise<Float32Array> {
  const device = rule.nonnegative ? hostDevice(ctx.executor) : computeDevice(ctx.executor);
  const features = rule.rank + (rule.biases ? 1 : 0);
  const name = dataSetName(STAGE);
  const ref = (part: string): PartitionRef => ({ name: `${name}/${part}`, partition: 0, version: 0 });
  const { place, strideStep } = device.info;
  const steps = new StepList(contracts);
  const shape = { rows: block.rows, columns: features, stride: factorStride(features, strideStep) };
  for (const matrix of ['previous', 'factors']) steps.allocate(STAGE, place, ref(matrix), shape);
  const factorsOf = (values: Float32Array): Partition => ({ layout: 'factors', rows: values.length / features, columns: { values } });
  const given: [PartitionRef, Partition, string][] = [[block.ref, hostForm(block), place], [ref('fixed'), factorsOf(items), place]];
  const inputs = { block: block.ref, fixed: ref('fixed'), previous: ref('previous') };
  const outputs = { factors: ref('factors') };
  const slices = device.info.wholePasses ? [{ from: 0, to: block.rows }] : balancedRanges(block.offsets, taskCount(block.ratings));
  const exact = { rank: features, cgBelow: 0, cgSteps: 1, ...(await variantOf(device, block, features, rule, ctx)) };
  if (rule.implicit === undefined) {
    addSliced(steps, STAGE, place, { kernel: 'update', inputs, outputs, params: { ...exact, lambda: rule.lambda, ...(rule.nonnegative ? { nonnegative: true } : {}) } }, slices);
  } else {
    const { alpha, base, unobserved } = rule.implicit;
    const shifts = rowShifts(block, allItems.length / features, { regParam: rule.lambda, regExponent: rule.exponent, unobservedWeight: base === 0 ? unobserved : undefined });
    given.push([ref('shifts'), { layout: 'row-shifts', rows: block.rows, columns: { values: shifts } }, place], [ref('all'), factorsOf(allItems), place]);
    steps.allocate(STAGE, place, ref('gram'), { rows: 16 * Math.ceil(features / 16), columns: features, stride: factorStride(features, strideStep) });
    addSliced(steps, STAGE, place, { kernel: 'gram', inputs: { factors: ref('all') }, outputs: { gram: ref('gram') }, params: { rank: features, weight: unobserved } }, gramSlices(features, device.info.wholePasses));
    addSliced(steps, STAGE, place, { kernel: 'update-implicit', inputs: { ...inputs, gram: ref('gram'), shifts: ref('shifts') }, outputs, params: { ...exact, alpha, base, ...(rule.nonnegative ? { nonnegative: true } : {}) } }, slices);
    steps.free(STAGE, place, [ref('gram'), ref('shifts'), ref('all')]);
  }
  steps.handOut(STAGE, ref('factors'), place);
  steps.free(STAGE, place, [ref('factors'), ref('previous'), ref('fixed'), block.ref]);
  const [solved] = (await runSteps(steps.steps, ctx, { given })).handed;
  return solved.columns.values as Float32Array;
}

/** The kernel of a device that has several. */
async function variantOf(device: Device, block: RatingBlock, features: number, rule: RowRule, ctx: ExecutionContext) {
  if (!device.info.choosesKernels) return {};
  let [longest, largestRating] = [0, 0];
  for (let row = 0; row < block.rows; row++) longest = Math.max(longest, block.offsets[row + 1] - block.offsets[row]);
  for (const value of block.values) largestRating = Math.max(largestRating, Math.abs(value));
  const problem = { rank: features, solver: 'cholesky', cgSteps: 1, precision: 'f32', biases: false, rows: block.rows, columns: features, ratings: block.ratings, iterations: 1, longest, largestRating, ...(rule.implicit ? { implicit: true } : {}) } as const;
  const [{ variant, precision, ratingScale }] = await runTasks(ctx, STAGE, device.info.place, [{ kernel: 'choose-update', inputs: {}, outputs: {}, params: problem }]);
  return { variant, precision, ratingScale };
}

/** Rows of a matrix side by side, and with biases a 1 behind each. */
export function fixedRows(values: Float32Array, width: number, { rank, biases }: RowRule, positions: Uint32Array): Float32Array {
  const features = rank + (biases ? 1 : 0);
  const rows = sharedArray(Float32Array, positions.length * features);
  positions.forEach((position, at) => {
    rows.set(values.subarray(position * width, position * width + rank), at * features);
    if (biases) rows[at * features + rank] = 1;
  });
  return rows;
}
