import { isCounted } from '../../../engine/keys/number-keys.ts';
import {
  emptyKeys,
  keyArrays,
  type KeyColumn,
  type KeyType,
  keysFromArrays,
} from '../../../engine/keys/key-column.ts';
import {
  dataSetName,
  type Partition,
  type PartitionRef,
  partitionRef,
  sharedArray,
} from '../../../engine/partition.ts';
import { hostDevice } from '../../../engine/run/devices.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { giveTo, takeFrom } from '../../../engine/run/hand-over.ts';
import { type Given, runSteps } from '../../../engine/run/run-steps.ts';
import { StepList } from '../../../engine/run/step-list.ts';
import { addSliced } from '../../tasks/run-tasks.ts';
import { contracts, type TaskOf, type ValuesOf } from '../../tasks/tasks.ts';
import { evenRanges } from '../row-ranges.ts';
import type { CodedChunk, NumberedChunk } from '../reading/rating-chunk.ts';
import { recodeFar, type Side, STAGE, tableRange } from './recode-far.ts';

/** A further task needs at least this number of table entries or ids: smaller shares are not worth a task. */
const TASK_ENTRIES = 1 << 16;

export interface PlacedIds {
  /** Distinct ids, ascending, and the number of occurrences of each. */
  readonly keys: KeyColumn;
  readonly counts: Int32Array;
}

interface Placed extends PlacedIds {
  /** Map from codes to positions, one for each chunk. */
  readonly maps: readonly PartitionRef[];
}

/**
 * Assigns each id its position among all sorted ids, and makes the map of each chunk from the chunk's own
 * codes to these positions. The chunks' ids are freed. `spilled`: codes are in files, and stay there.
 */
export async function numberIds(
  numbered: readonly NumberedChunk[],
  types: Readonly<Record<Side, KeyType>>,
  spilled: boolean,
  ctx: ExecutionContext,
): Promise<{ readonly users: PlacedIds; readonly items: PlacedIds; readonly chunks: readonly CodedChunk[] }> {
  const chunks = await recodeFar(numbered, types, spilled, ctx);
  const [users, items] = await bothSides((side) => new SideNumbers(chunks, side, types[side], ctx).place());
  return {
    users,
    items,
    chunks: chunks.map(({ rows, codes, values }, c) => ({
      rows,
      codes,
      values,
      userMap: users.maps[c],
      itemMap: items.maps[c],
    })),
  };
}

/** Runs `work` for both sides concurrently. A failure is thrown after both have ended. */
export async function bothSides<Result>(
  work: (side: Side) => Promise<Result>,
): Promise<[users: Result, items: Result]> {
  const sides = [work('users'), work('items')] as const;
  await Promise.allSettled(sides);
  return await Promise.all(sides);
}

/** Assigns positions to the ids of one side. */
class SideNumbers {
  readonly #chunks: readonly NumberedChunk[];
  readonly #side: Side;
  readonly #type: KeyType;
  readonly #ctx: ExecutionContext;
  readonly #name: string;

  constructor(chunks: readonly NumberedChunk[], side: Side, type: KeyType, ctx: ExecutionContext) {
    [this.#chunks, this.#side, this.#type, this.#ctx] = [chunks, side, type, ctx];
    this.#name = dataSetName(side);
  }

  place(): Promise<Placed> {
    const range = tableRange(this.#chunks, this.#side);
    return range === undefined ? this.#uniteKeys() : this.#countTable(...range);
  }

  #ref(part: string, partition = 0): PartitionRef {
    return partitionRef(`${this.#name}/${part}`, partition);
  }

  /**
   * Numbers integer ids of a narrow range: counts them in one table indexed by id, from which the positions
   * follow. The map of a chunk is a view of the table's.
   */
  async #countTable(least: number, entries: number): Promise<Placed> {
    const { place, parallelism } = this.#device;
    const [counts, map, ids] = ['counts', 'map', 'ids'].map((part) => this.#ref(part));
    const inputs: Record<string, PartitionRef> = {};
    const ranges = this.#chunks.map((chunk, c) => {
      const [first, last] = (chunk[this.#side].summary as { readonly range: readonly [number, number] })
        .range;
      const counted = isCounted(last - first + 1, chunk.rows);
      inputs[`${counted ? 'keys' : 'codes'}.${c}`] = counted ? chunk[this.#side].keys : chunk.codes;
      return [first - least, last - least + 1] as const;
    });
    const steps = new StepList(contracts);
    const task = {
      kernel: 'count-ids',
      inputs: inputs as TaskOf<'count-ids'>['inputs'],
      outputs: { counts },
      params: { starts: ranges.map(([start]) => start), side: this.#side },
    } as const;
    addSliced(steps, STAGE, place, task, evenRanges(entries, sharesOf(entries, parallelism)));
    const ranked: TaskOf<'rank-ids'> = {
      kernel: 'rank-ids',
      inputs: { counts },
      outputs: { map, keys: ids },
      params: { least, wide: this.#type === 'int64' },
    };
    steps.task(STAGE, place, ranked);
    steps.free(STAGE, place, [counts, ...this.#chunks.map((chunk) => chunk[this.#side].keys)]);
    const given: Given = [
      counts,
      { layout: 'id-counts', rows: entries, columns: { counts: sharedArray(Int32Array, entries) } },
      place,
    ];
    await runSteps(steps.steps, this.#ctx, { given: [given] });
    const [all, { columns }] = await takeFrom(this.#ctx, STAGE, place, [map, ids]);
    const maps = this.#chunks.map((_, c) => this.#ref('maps', c));
    await giveTo(
      this.#ctx,
      place,
      maps.map((ref, c) => [ref, mapPartition((all.columns.map as Uint32Array).subarray(...ranges[c]))]),
    );
    return { keys: keysFromArrays(columns, 'key'), counts: columns.counts as Int32Array, maps };
  }

  /**
   * Numbers other ids: each task finds the distinct ids of one share of all possible ids, in a hash table of
   * its own. Then the sorted shares are merged.
   */
  async #uniteKeys(): Promise<Placed> {
    const { place, parallelism } = this.#device;
    const sizes = this.#chunks.map((chunk) => (chunk[this.#side].summary as { readonly size: number }).size);
    const ids = sizes.reduce((sum, size) => sum + size, 0);
    const shares = sharesOf(ids, parallelism);
    const own = sizes.map((_, c) => this.#ref('own', c));
    const keys = Object.fromEntries(this.#chunks.map((chunk, c) => [`keys.${c}`, chunk[this.#side].keys]));
    const steps = new StepList(contracts);
    for (let share = 0; share < shares; share++) {
      const outputs = {
        share: this.#ref('share', share),
        ...Object.fromEntries(own.map((ref, c) => [`map.${c}`, ref])),
      };
      const task: TaskOf<'unite-ids'> = {
        kernel: 'unite-ids',
        inputs: keys,
        outputs,
        params: { share, shares, chunks: sizes.length },
      };
      // All shares write the same map, but different codes of it, so their tasks may run at the same time.
      steps.task(STAGE, place, task, { bands: Object.fromEntries(own.map((_, c) => [`map.${c}`, share])) });
    }
    steps.free(STAGE, place, Object.values(keys));
    const given = own.map((ref, c): Given => [ref, mapPartition(sharedArray(Uint32Array, sizes[c])), place]);
    const united = (await runSteps(steps.steps, this.#ctx, { given })).of(
      STAGE,
      'unite-ids',
    ) as ValuesOf<'unite-ids'>[];
    return this.#mergeShares(united, own);
  }

  async #mergeShares(
    united: readonly ValuesOf<'unite-ids'>[],
    own: readonly PartitionRef[],
  ): Promise<Placed> {
    const { place, parallelism } = this.#device;
    const size = united.reduce((sum, share) => sum + share.size, 0);
    const counts = sharedArray(Int32Array, size);
    const keys = emptyKeys(
      this.#type,
      size,
      united.reduce((sum, { textBytes }) => sum + textBytes, 0),
    );
    const [merged, places] = [this.#ref('merged'), this.#ref('places')];
    const numbers = Math.max(...united.map((share) => share.size)) * united.length;
    const inputs = Object.fromEntries(
      united.map((_, share) => [`share.${share}`, this.#ref('share', share)]),
    );
    const parts = sharesOf(size, parallelism);
    const steps = new StepList(contracts);
    const task: Omit<TaskOf<'merge-ids'>, 'params'> = {
      kernel: 'merge-ids',
      inputs,
      outputs: { keys: merged, places },
    };
    steps.task(
      STAGE,
      place,
      { ...task, params: { shares: united.length, parts } },
      { slices: Array.from({ length: parts }, (_, part) => ({ part })) },
    );
    const maps = own.map((_, c) => this.#ref('maps', c));
    own.forEach(
      (first, c) =>
        void steps.task(STAGE, place, {
          kernel: 'compose-maps',
          inputs: { first, second: places },
          outputs: { map: maps[c] },
          params: {},
        }),
    );
    steps.free(STAGE, place, [...own, ...Object.values(inputs), merged, places]);
    await runSteps(steps.steps, this.#ctx, {
      given: [
        [merged, { layout: 'keys', rows: size, columns: { ...keyArrays(keys, 'key'), counts } }, place],
        [places, mapPartition(sharedArray(Uint32Array, numbers)), place],
      ],
    });
    return { keys, counts, maps };
  }

  get #device() {
    return hostDevice(this.#ctx.executor).info;
  }
}

/** Number of occurrences of each id; the chunks' codes must already be positions among all ids. */
export async function countPositions(
  chunks: readonly CodedChunk[],
  side: Side,
  size: number,
  ctx: ExecutionContext,
): Promise<Int32Array> {
  const { place, parallelism } = hostDevice(ctx.executor).info;
  const counts = partitionRef(dataSetName('counts'));
  const inputs = Object.fromEntries(chunks.map(({ codes }, c) => [`codes.${c}`, codes]));
  const steps = new StepList(contracts);
  addSliced(
    steps,
    STAGE,
    place,
    { kernel: 'count-ids', inputs, outputs: { counts }, params: { starts: chunks.map(() => 0), side } },
    evenRanges(size, sharesOf(size, parallelism)),
  );
  steps.free(STAGE, place, [counts]);
  const made = sharedArray(Int32Array, size);
  await runSteps(steps.steps, ctx, {
    given: [[counts, { layout: 'id-counts', rows: size, columns: { counts: made } }, place]],
  });
  return made;
}

/** The map from codes to positions as a partition: `map[code]` is the position. */
export function mapPartition(map: Uint32Array): Partition {
  return { layout: 'map', rows: map.length, columns: { map } };
}

/** Number of tasks to divide entries among. */
function sharesOf(entries: number, parallelism: number): number {
  return Math.max(1, Math.min(parallelism, Math.ceil(entries / TASK_ENTRIES)));
}
