import type { Partition, PartitionRef } from '../../../engine/partition.ts';
import type { PhysicalPlan } from '../../../engine/plan/physical-plan.ts';
import type { DataPart, DataSet } from '../../../engine/plan/stages.ts';
import type { Given } from '../../../engine/run/run-steps.ts';
import { blockBytes } from '../../planner/sizes.ts';
import { hostForm, type RatingBlock } from '../../ratings/rating-block.ts';
import type { RatedRows } from '../../ratings/spilled-ratings.ts';

/**
 * The data sets of a plan while they are bound: the sizes of their parts, and the partitions that are given.
 */
export class BoundSets {
  readonly given: Given[] = [];
  readonly refs: Record<string, readonly PartitionRef[]> = {};
  readonly #sets: Map<string, DataSet>;

  constructor({ datasets }: PhysicalPlan) {
    this.#sets = new Map(datasets.map((set) => [set.name, set]));
  }

  get datasets(): DataSet[] {
    return [...this.#sets.values()];
  }

  has(set: string): boolean {
    return this.#sets.has(set);
  }

  /** Sets sizes of the parts; nothing where the plan has no such set. */
  setParts(name: string, sizes: (partition: number) => Pick<DataPart, 'rows'> & Partial<DataPart>): void {
    const set = this.#sets.get(name);
    if (set !== undefined)
      this.#sets.set(name, {
        ...set,
        parts: set.parts.map((part, partition) => ({ ...part, ...sizes(partition) })),
      });
  }

  /** Notes the names and sizes of blocks that lie in files already. */
  name(name: string, blocks: readonly RatedRows[]): void {
    this.refs[name] = blocks.map(({ ref }) => ref);
    this.setParts(name, (partition) => ({
      rows: blocks[partition].rows,
      bytes: blockBytes(blocks[partition].rows, blocks[partition].ratings),
    }));
  }

  give(
    name: string,
    parts: readonly { readonly ref: PartitionRef; readonly partition: Partition; readonly bytes: number }[],
  ): void {
    this.refs[name] = parts.map(({ ref }) => ref);
    this.given.push(...parts.map(({ ref, partition }) => [ref, partition] as const));
    this.setParts(name, (partition) => ({
      rows: parts[partition].partition.rows,
      bytes: parts[partition].bytes,
    }));
  }

  giveBlocks(name: string, blocks: readonly RatingBlock[]): void {
    this.give(
      name,
      blocks.map((block) => ({
        ref: block.ref,
        partition: hostForm(block),
        bytes: blockBytes(block.rows, block.ratings),
      })),
    );
  }
}
