import type { PartitionRef } from '../../partition.ts';
import { type BoundPlan, dataSetOf } from '../../plan/bound-plan.ts';
import { SPILL, HOST, type Place } from '../../plan/place.ts';
import type { DataSet, Work } from '../../plan/stages.ts';
import { type Reduction, reduceToOne, reduceScatter } from '../exchanges/reduce.ts';
import { allGather, spreadRows, holderOf, holdersOf, passRows } from '../exchanges/send-rows.ts';
import type { StepList } from '../step-list.ts';
import type { Wire } from '../step.ts';
import type { StageParts } from './pipeline.ts';
import { shapeAt } from './stage-visit.ts';
import type { WrittenVersions } from './written-versions.ts';

type Exchange = Extract<Work, { readonly kind: 'exchange' }>;

/** Adds the steps of exchange stages, part by part of each data set; see engine/run/exchanges. */
export class Exchanges {
  readonly #bound: BoundPlan;
  readonly #list: StepList;
  readonly #versions: WrittenVersions;
  readonly #givenBy: (ref: PartitionRef) => number | undefined;
  /** The number of the round; in the phases `measure` and `end`, the number of the last round. */
  readonly #round: number;
  /** The last step that moved a part from host memory to a file. */
  #filed: number | undefined;

  constructor(
    bound: BoundPlan,
    list: StepList,
    versions: WrittenVersions,
    round: number,
    givenBy: (ref: PartitionRef) => number | undefined,
  ) {
    [this.#bound, this.#list, this.#versions, this.#round, this.#givenBy] = [
      bound,
      list,
      versions,
      round,
      givenBy,
    ];
  }

  of(stage: string, work: Exchange): StageParts[] {
    return work.data.map((data, i) => {
      const set = dataSetOf(this.#bound, data);
      if (work.how === 'move') return this.#move(stage, set, work.to);
      if (work.how === 'share') return this.#share(stage, set);
      const to = dataSetOf(this.#bound, work.to[i]);
      if (work.how === 'spread') return this.#spread(stage, set, to);
      return work.how === 'all-gather' ? this.#gather(stage, set, to) : this.#reduce(stage, set, to, work);
    });
  }

  allocate(stage: string, set: DataSet): StageParts {
    const at = homesOf(set);
    const run = (part: number) => {
      const ref = this.#versions.next(stage, set, part);
      for (const place of set.parts[part].at)
        this.#list.allocate(stage, place, ref, shapeAt(this.#bound, set, part, place));
    };
    return { at, run };
  }

  free(stage: string, set: DataSet): StageParts {
    const at = homesOf(set);
    const run = (part: number) => {
      const ref = this.#versions.current(set, part);
      for (const place of set.parts[part].at) this.#list.free(stage, place, [ref]);
    };
    return { at, run, end: () => this.#versions.forget(set) };
  }

  #move(stage: string, set: DataSet, to: 'places' | 'host' | 'from-host'): StageParts {
    return {
      at: homesOf(set),
      run: (part) => {
        const { at } = set.parts[part];
        if (to === 'from-host') {
          this.#moveFromHost(stage, this.#versions.next(stage, set, part), at);
          return;
        }
        const ref = this.#versions.current(set, part);
        const [home, ...others] = at;
        if (to === 'host')
          this.#list.handOut(
            stage,
            ref,
            holderOf(set, part, this.#round),
            set.columns === undefined ? this.#givenBy(ref) : undefined,
          );
        else for (const place of others) this.#list.move(stage, ref, home, place, { load: true });
      },
    };
  }

  /**
   * Copies a part from host memory to its places. Parts whose home is a file are moved one after another,
   * since one that is given in a file is in memory meanwhile.
   */
  #moveFromHost(stage: string, ref: PartitionRef, at: readonly Place[]): void {
    if (at[0] === HOST) return;
    const ended = at[0] === SPILL && this.#filed !== undefined ? [this.#filed] : [];
    for (const place of at) this.#list.move(stage, ref, HOST, place, { ended });
    const freed = this.#list.free(stage, HOST, [ref]);
    if (at[0] === SPILL) this.#filed = freed;
  }

  #share(stage: string, set: DataSet): StageParts {
    return {
      at: set.parts.map((_, part) => holderOf(set, part, this.#round)),
      run: (part) => {
        const [holder, holders] = [holderOf(set, part, this.#round), holdersOf(set, part, this.#round)];
        passRows(
          this.#list,
          stage,
          this.#bound,
          set,
          { ref: this.#versions.current(set, part), at: holder, turn: 0 },
          set.parts[part].at.filter((place) => !holders.includes(place)),
        );
      },
    };
  }

  #gather(stage: string, set: DataSet, whole: DataSet): StageParts {
    const at = homesOf(set);
    const run = allGather(this.#list, stage, {
      rows: set.parts.map(({ rows }) => rows),
      part: (part) => ({
        ref: this.#versions.current(set, part),
        at: at[part],
        also: set.parts[part].at.slice(1),
      }),
      places: whole.parts[0].at,
      wire: this.#wire(whole.sentAs ?? (whole.half === 'only' ? 'f16' : 'f32'), whole.parts[0].at[0]),
      whole: () => this.#versions.next(stage, whole, 0),
      shape: (place) => shapeAt(this.#bound, whole, 0, place),
    });
    return { at, run };
  }

  #spread(stage: string, set: DataSet, to: DataSet): StageParts {
    const at = homesOf(set);
    const each = to.parts.length / at.length;
    const run = (part: number) => {
      const ref = this.#versions.current(set, part);
      if (to.parts[part].at[0] === SPILL) {
        this.#list.move(stage, ref, at[part], SPILL, { as: this.#versions.next(stage, to, part) });
        return;
      }
      const copies = Array.from({ length: each }, (_, k) => {
        const copy = part * each + k;
        const [place] = to.parts[copy].at;
        return {
          ref: this.#versions.next(stage, to, copy),
          at: place,
          shape: shapeAt(this.#bound, to, copy, place),
        };
      });
      spreadRows(
        this.#list,
        stage,
        { ref, at: at[part] },
        copies,
        at[part] === SPILL ? undefined : this.#wire('f32'),
      );
    };
    return { at, run };
  }

  /** The form in which rows are sent to a device with its own memory; undefined for other devices. */
  #wire(form: Wire, to: Place = this.#bound.devices[0].place): Wire | undefined {
    return this.#bound.devices.some(({ place, ownMemory }) => place === to && ownMemory) ? form : undefined;
  }

  #reduce(
    stage: string,
    partials: DataSet,
    sums: DataSet,
    { how, groups }: Extract<Exchange, { readonly how: 'reduce-to-one' | 'reduce-scatter' }>,
  ): StageParts {
    const each = partials.parts.length / sums.parts.length;
    const reduction: Reduction = {
      slice: (slice) => ({
        rows: sums.parts[slice].rows,
        partials: Array.from({ length: each }, (_, k) => ({
          ref: this.#versions.current(partials, slice * each + k),
          at: partials.parts[slice * each + k].at[0],
        })),
        owner: sums.parts[slice].at[0],
        also: sums.parts[slice].at.slice(1),
        wire: this.#wire('f32'),
      }),
      sum: (slice) => this.#versions.next(stage, sums, slice),
      shape: (slice, place) => shapeAt(this.#bound, sums, slice, place),
    };
    const run =
      how === 'reduce-to-one'
        ? reduceToOne(this.#list, stage, reduction)
        : reduceScatter(this.#list, stage, reduction, groups);
    return { at: homesOf(sums), run, end: () => this.#versions.forget(partials) };
  }
}

function homesOf({ parts }: DataSet): Place[] {
  return parts.map(({ at: [home] }) => home);
}
