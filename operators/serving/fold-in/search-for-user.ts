import type { ExecutionContext } from '../../../engine/run/context.ts';
import { computeDevice } from '../../../engine/run/devices.ts';
import { type Given, runSteps } from '../../../engine/run/run-steps.ts';
import { StepList } from '../../../engine/run/step-list.ts';
import { factorsOf, refsOf, shiftsOf, solvingOf } from '../../als/rows/solve-rows.ts';
import { factorStride } from '../../planner/sizes.ts';
import type { SearchIndex } from '../../tasks/search-tasks.ts';
import { valuesOfStage } from '../../tasks/task-values.ts';
import { contracts, type TaskOf } from '../../tasks/tasks.ts';
import { type Found, maskInput, searchParams, type SearchRequest } from '../search.ts';
import { type FixedItems, type LaterRatings, solverOf, weighted } from './solve-users.ts';

const STAGE = 'search';

/**
 * The n best items for one user who is not in the model. Solves the user's factors as solveUsers does, and
 * searches, in one task: a single message to the thread that has the index of the items. Undefined if the
 * user's equations have no finite solution.
 */
export async function searchForUser(
  ratings: LaterRatings,
  fixed: FixedItems,
  index: SearchIndex,
  request: Omit<SearchRequest, 'query'>,
  ctx: ExecutionContext,
): Promise<Found | undefined> {
  const { rule, model } = fixed;
  const { rank } = rule;
  const device = computeDevice(ctx.executor);
  const { place, strideStep } = device.info;
  const block = weighted(ratings, fixed);
  const ref = refsOf(STAGE);
  const [rows, gram] = [ref('rows'), ref('gram')];
  const shifts = rule.implicit && shiftsOf(block, model.items, rule).columns.values;
  const [masked, given] = maskInput(request.mask, place);
  const task: TaskOf<'search-for-row'> = {
    kernel: 'search-for-row',
    inputs: { ...index, ...masked, ...(fixed.gram && { gram }) },
    outputs: { rows },
    params: {
      ...searchParams(request),
      rated: Array.from(ratings.items),
      values: Array.from(block.values),
      solving: solvingOf(rule, solverOf(rank, device)),
      shift: Number(shifts?.[0] ?? 0),
    },
  };
  const all: Given[] = [...given];
  if (fixed.gram) all.push([gram, factorsOf(await fixed.gram(ctx.signal), rank), place]);
  const steps = new StepList(contracts);
  const stride = factorStride(rank, strideStep);
  steps.allocate(STAGE, place, rows, { rows: block.ratings + 2, columns: rank, stride });
  steps.task(STAGE, place, task);
  steps.free(STAGE, place, [rows, ...all.map(([ref]) => ref)]);
  const results = await runSteps(steps.steps, ctx, { given: all });
  const [{ solved, items, scores }] = valuesOfStage(results, STAGE, task.kernel);
  return solved ? { positions: items, scores } : undefined;
}
