import type { DeviceInfo } from '../../../engine/plan/device-info.ts';
import { dataSetName, partitionRef } from '../../../engine/partition.ts';
import { startPhase } from '../../../engine/phase.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { computeDevice } from '../../../engine/run/devices.ts';
import { giveTo } from '../../../engine/run/hand-over.ts';
import { Holdings } from '../../../engine/run/holdings.ts';
import { type Given, runSteps } from '../../../engine/run/run-steps.ts';
import { StepList } from '../../../engine/run/step-list.ts';
import { mapOrdered } from '../../../engine/stream/map-ordered.ts';
import { type RatingBlock, rowsOfBlock, withoutValues } from '../../ratings/rating-block.ts';
import { announceSearch } from '../../serving/top-lists.ts';
import { type FactorModel, type PlacedFactors, placeFactors } from '../../serving/factor-model.ts';
import { contracts, type TaskOf } from '../../tasks/tasks.ts';

const STAGE = 'rank-listed';

/**
 * Number of users of one task. A device that divides the rows of a task itself is busy only with many of
 * them.
 */
function usersPerTask({ wholePasses }: DeviceInfo): number {
  return wholePasses ? 65_536 : 2048;
}

interface Range {
  readonly from: number;
  readonly to: number;
}

/**
 * Ranks a test set's positives by models, one model after the other. The blocks stay on the device while the
 * holdings of `ctx` are open, so that the next model only uploads its factors. `positives` and `exclude` are
 * blocks over the users and items of the models; no pair may be in both.
 */
export class PositiveRanks {
  readonly #positives: RatingBlock;
  readonly #exclude: RatingBlock | undefined;
  readonly #ctx: ExecutionContext;
  readonly #name = dataSetName('ranked');
  /** First users of the ranges whose blocks are already on the device. */
  readonly #placed = new Set<number>();

  constructor(positives: RatingBlock, exclude: RatingBlock | undefined, ctx: ExecutionContext) {
    this.#positives = positives;
    this.#exclude = exclude;
    this.#ctx = ctx;
  }

  /**
   * Rank and ties of each test item (positive) among all items that are not excluded for its user: see
   * `places` of Rankings. A caller that distinguishes only the first `depth` ranks saves time. The m x n
   * scores are never stored.
   */
  async places(model: FactorModel, depth?: number): Promise<Uint32Array> {
    const { ratings, offsets, rows } = this.#positives;
    const places = new Uint32Array(2 * ratings);
    const { info } = computeDevice(this.#ctx.executor);
    if (this.#placed.size === 0) announceSearch(STAGE, this.#exclude !== undefined, info, this.#ctx);
    const phase = startPhase(this.#ctx.events, 'rank', 'users', rows);
    await Holdings.within(this.#ctx, async (held) => {
      const factors = await placeFactors(
        model,
        info.place,
        held,
        info.ownMemory ? ['items'] : ['users', 'items'],
      );
      const rank = (range: Range) => this.#rank(range, model, factors, depth, info);
      for await (const { range, values } of mapOrdered(
        ranges(this.#positives, usersPerTask(info)),
        info.inOrder ? 3 : 2 * info.parallelism,
        rank,
      )) {
        places.set(values, 2 * offsets[range.from]);
        phase.progress(range.to);
      }
    });
    phase.end(rows);
    return places;
  }

  /**
   * Ranks the test items of a range of users with one task. A device with its own memory is sent one range of
   * users and pairs at a time; threads of the host read all of them in shared memory.
   */
  async #rank(
    range: Range,
    { rank, userFactors }: FactorModel,
    factors: PlacedFactors,
    depth: number | undefined,
    { place, ownMemory }: DeviceInfo,
  ) {
    const { from, to } = range;
    const [first, last] = ownMemory ? [from, to] : [0, this.#positives.rows];
    const ref = (part: string) =>
      partitionRef(`${this.#name}/${part}`, part === 'listed' || part === 'exclude' ? first : from);
    const blocks = { listed: this.#positives, ...(this.#exclude ? { exclude: this.#exclude } : {}) };
    if (!this.#placed.has(first)) {
      this.#placed.add(first);
      await giveTo(
        this.#ctx,
        place,
        Object.entries(blocks).map(([part, block]) => [
          ref(part),
          withoutValues(ownMemory ? rowsOfBlock(block, first, last, ref(part)) : block),
        ]),
      );
    }
    const [places, users] = [ref('places'), ref('users')];
    const given: Given[] = ownMemory
      ? [
          [
            users,
            {
              layout: 'factors',
              rows: to - from,
              columns: { values: userFactors.subarray(from * rank, to * rank) },
            },
            place,
          ],
        ]
      : [];
    const inputs = {
      rowFactors: ownMemory ? users : factors.users,
      columnFactors: factors.items,
      listed: ref('listed'),
      ...(this.#exclude ? { exclude: ref('exclude') } : {}),
    };
    const task: TaskOf<'rank-listed'> = {
      kernel: 'rank-listed',
      inputs,
      outputs: { places },
      params: { from: from - first, to: to - first, rank, ...(depth === undefined ? {} : { depth }) },
    };
    const steps = new StepList(contracts);
    steps.handOut(STAGE, places, place, steps.task(STAGE, place, task));
    steps.free(STAGE, place, ownMemory ? [places, users] : [places]);
    const [{ columns }] = (await runSteps(steps.steps, this.#ctx, { given })).handed;
    return { range, values: columns.values as Uint32Array };
  }
}

/** Ranges of users, without ranges that have no positive. */
async function* ranges({ rows, offsets }: RatingBlock, step: number): AsyncGenerator<Range> {
  for (let from = 0; from < rows; from += step) {
    const to = Math.min(rows, from + step);
    if (offsets[to] > offsets[from]) yield { from, to };
  }
}
