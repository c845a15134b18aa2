import type { Device, KernelChoice } from '../engine/executor.ts';
import type { JsonObject } from '../engine/json.ts';
import type { AlsParams } from './als-params.ts';
import { longestRow } from './rating-block.ts';
import type { RatingBlocks } from './rating-blocks.ts';
import { chooseSolver } from './solver-choice.ts';

/** By the side whose rows are solved. */
export interface AlsChoices {
  readonly users: KernelChoice;
  readonly items: KernelChoice;
}

/** What the choice depends on. Where the data are not there, the longest rows and the ratings are not known. */
export interface ChoiceProfile {
  /** m */
  readonly users: number;
  /** n */
  readonly items: number;
  /** Nz */
  readonly ratings: number;
  readonly longestUser?: number;
  readonly longestItem?: number;
  readonly largestRating?: number;
}

/** Ratings are stars unless something is known of them. */
const STARS = 5;

/** The kernels that the device takes for both half-iterations; undefined for a device without a choice. Throws UsageError. */
export async function chooseKernels(device: Device, profile: ChoiceProfile, params: AlsParams): Promise<AlsChoices | undefined> {
  if (device.choose === undefined) return undefined;
  const problems = updateProblems(profile, params);
  const [users, items] = await Promise.all([device.choose(problems.users), device.choose(problems.items)]);
  return { users, items };
}

/** What a device is asked about each side. */
export function updateProblems(profile: ChoiceProfile, params: AlsParams): { readonly users: JsonObject; readonly items: JsonObject } {
  const { users, items, longestUser, longestItem } = profile;
  return { users: updateProblem(profile, params, users, items, longestUser), items: updateProblem(profile, params, items, users, longestItem) };
}

/** What is known of sorted ratings. */
export function profileOfBlocks({ byUser, byItem }: Pick<RatingBlocks, 'byUser' | 'byItem'>): ChoiceProfile {
  let largestRating = 0;
  for (let k = 0; k < byUser.values.length; k++) largestRating = Math.max(largestRating, Math.abs(byUser.values[k]));
  return { users: byUser.rows, items: byItem.rows, ratings: byUser.ratings, longestUser: longestRow(byUser), longestItem: longestRow(byItem), largestRating };
}

/** `rank` counts the feature that is 1 with biases; `rows` are solved from `columns`; `longest` is the most ratings of a row. */
function updateProblem({ ratings, largestRating = STARS }: ChoiceProfile, params: AlsParams, rows: number, columns: number, longest = Math.min(ratings, columns)): JsonObject {
  const { precision, kernel, biases, cgSteps } = params;
  const rank = params.rank + (biases ? 1 : 0);
  const solver = chooseSolver({ ...params, rank }, 'gpu').cgBelow > 0 ? 'cg' : 'cholesky';
  return { rank, solver, cgSteps, precision, biases, rows, columns, ratings, iterations: params.maxIter, longest, largestRating, ...(kernel === undefined ? {} : { kernel }) };
}
