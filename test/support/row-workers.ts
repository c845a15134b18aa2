import type { RowPrecision } from '../../api/worker/opening.ts';
import { blocksOfIds } from '../../api/worker/out-rows.ts';
import type { JsonObject } from '../../engine/json.ts';
import { type Frame, ratingStream, rowsOf, type Triples, WorkerHere, WorkerParent } from './worker-parent.ts';

type Side = 'users' | 'items';
const sides = ['users', 'items'] as const;
const other = { users: 'items', items: 'users' } as const;

/** A block's newest factors, as they came from a worker. */
interface Solved {
  readonly version: number;
  readonly frames: readonly Frame[];
}

/** `equations`: items are solved from sums of equations, and users as with `shuffle`. */
export type RowExchange = 'shuffle' | 'broadcast' | 'equations';

/**
 * Trains on N blocks of users and N of items, as a plugin does on many hosts: block k is in worker k, each
 * block gets the rows of the other side that it needs from their workers (`shuffle`), or whole sides
 * (`broadcast`), or shares of its equations, and a lost worker is replaced by a new one.
 */
export class RowTraining {
  readonly #params: JsonObject;
  readonly #triples: Triples;
  readonly #workers: (WorkerHere | WorkerParent)[];
  /** True if a worker has several blocks, which take turns. */
  readonly #isShared: boolean;
  /** Requests that were answered by what the worker lacks. */
  readonly missing: Record<string, number> = {};
  readonly #solved: Record<Side, Solved[]> = { users: [], items: [] };
  #sums = { ratings: 0, squares: 0 };
  #grams: Record<Side, Float64Array | undefined> = { users: undefined, items: undefined };

  /** Of processes; undefined: the workers run inside this process. */
  readonly #flags: readonly string[] | undefined;
  readonly #exchange: RowExchange;
  readonly #precision: RowPrecision;
  /** Rows that were sent to a block to solve it, summed over blocks and iterations. */
  rowsSent = 0;

  constructor(
    params: JsonObject,
    triples: Triples,
    blocks: number,
    {
      flags,
      exchange = 'shuffle',
      precision = 'float32',
      processes = blocks,
    }: {
      readonly flags?: readonly string[];
      readonly exchange?: RowExchange;
      readonly precision?: RowPrecision;
      /** Fewer than blocks: block k is in worker k modulo processes. */
      readonly processes?: number;
    } = {},
  ) {
    this.#precision = precision;
    this.#flags = flags;
    this.#exchange = exchange;
    this.#params = params;
    this.#triples = triples;
    const workers = Array.from({ length: processes }, () => this.#open());
    this.#workers = Array.from({ length: blocks }, (_, k) => workers[k % processes]);
    this.#isShared = processes < blocks;
  }

  async start(): Promise<void> {
    const built = await this.#each(async (k) => {
      const users = await this.#load(k, 'users');
      await this.#load(k, 'items');
      return users;
    });
    for (const { ratings, squares } of built as { ratings: number; squares: number }[])
      this.#sums = { ratings: this.#sums.ratings + ratings, squares: this.#sums.squares + squares };
    this.#solved.users = await this.#each(async (k) => ({
      version: 0,
      frames: await this.#begin(k),
    }));
    await this.#gram('users', 0);
  }

  /** Items, then users. `exact`: the rows are those of the model. */
  async iterate(exact = false): Promise<void> {
    for (const side of ['items', 'users'] as const) {
      const version = (this.#solved[side][0]?.version ?? 0) + 1;
      const outgoing = await this.#outgoing(other[side]);
      if (!this.#isSummed(side)) await this.#each((k) => this.#fix(k, side, outgoing[k]));
      this.#solved[side] = await this.#each(async (k) => ({
        version,
        frames: await this.#solve(k, side, { version, exact }, outgoing[k]),
      }));
      await this.#gram(side, version);
    }
  }

  /** `solved`: from the objective of the solve, if it suffices. */
  async loss(solved = false): Promise<{ loss: number; trainRmse: number }> {
    const [users, items] = sides.map((side) => this.#solved[side][0].version);
    const answers = await this.#each(async (k) => {
      const ofUsers = await this.#workers[k].ask({
        type: 'loss',
        block: `users-${k}`,
        version: users,
        fixed: items,
        solved,
      });
      const ofItems = await this.#workers[k].ask({ type: 'loss', block: `items-${k}`, version: items });
      return [ofUsers.answer.header, ofItems.answer.header];
    });
    const sum = (name: string) => answers.flat().reduce((all, answer) => all + Number(answer[name] ?? 0), 0);
    const [gu, gi] = sides.map((side) => this.#grams[side]);
    const trace = gu && gi ? gu.reduce((all, value, k) => all + value * gi[k], 0) : 0;
    return {
      loss: sum('squared') + sum('observed') + sum('penalty') + trace,
      trainRmse: Math.sqrt(sum('squared') / sum('count')),
    };
  }

  factors(side: Side): Map<number, number[]> {
    const all = this.#solved[side].flatMap(({ frames }) => [...rowsOf(frames)]);
    return new Map(all.sort(([a], [b]) => a - b));
  }

  /** Kills a worker without a word, and starts an empty one in its place. */
  async lose(k: number): Promise<void> {
    this.#workers[k].kill();
    await this.#workers[k].ended;
    this.#workers[k] = this.#open();
  }

  async end(): Promise<(number | null)[]> {
    return this.#each(async (k) => {
      this.#workers[k].request({ type: 'end' });
      return (await this.#workers[k].ended).code;
    });
  }

  /** Ends what still runs. */
  kill(): void {
    for (const worker of this.#workers) worker.kill();
  }

  #open(): WorkerHere | WorkerParent {
    const worker = this.#flags === undefined ? new WorkerHere() : new WorkerParent({ flags: this.#flags });
    worker.open({ command: 'rows', params: this.#params, exchange: this.#precision });
    return worker;
  }

  async #load(k: number, side: Side): Promise<JsonObject> {
    const worker = this.#workers[k];
    const block = `${side}-${k}`;
    const own = this.#ratingsOf(side, k);
    const half = Math.floor(own.users.length / 2);
    const part = (from: number, to?: number) =>
      ratingStream({
        users: own.users.slice(from, to),
        items: own.items.slice(from, to),
        ratings: own.ratings.slice(from, to),
      });
    await worker.ask({ type: 'load', block, side }, part(0, half));
    await worker.ask({ type: 'load', block, side }, part(half));
    const blocks = this.#workers.length;
    return (await worker.ask({ type: 'build', block, rows: own.users.length, blocks })).answer.header;
  }

  #ratingsOf(side: Side, k: number): Triples {
    const values = Int32Array.from(this.#triples[side] as readonly number[]);
    const owners = blocksOfIds({ type: 'int32', values }, this.#workers.length);
    const keep = Array.from(owners.keys()).filter((at) => owners[at] === k);
    const take = <T>(values: readonly T[]) => keep.map((at) => values[at]);
    return {
      users: take(this.#triples.users),
      items: take(this.#triples.items),
      ratings: take(this.#triples.ratings),
    };
  }

  /** The frames of a side that each block of the other side gets. */
  async #outgoing(side: Side): Promise<readonly Frame[][]> {
    const sent = await this.#each(async (k) => {
      const frames: (readonly Frame[])[] = [];
      for (let to = 0; to < this.#workers.length; to++)
        frames.push(
          this.#exchange === 'broadcast' ? this.#solved[side][k].frames : await this.#send(k, side, to),
        );
      return frames;
    });
    return this.#workers.map((_, to) => sent.flatMap((frames) => frames[to]));
  }

  async #begin(k: number): Promise<readonly Frame[]> {
    for (;;) {
      const request = { type: 'start', block: `users-${k}`, version: 0, ...this.#sums };
      const { answer, factors } = await this.#workers[k].ask(request);
      if (!this.#lacks(answer)) return factors;
      await this.#load(k, 'users');
    }
  }

  /** Counts what a worker lacked for a request. */
  #lacks({ header: { missing } }: Frame): boolean {
    if (typeof missing !== 'string') return false;
    this.missing[missing] = (this.missing[missing] ?? 0) + 1;
    return true;
  }

  async #send(k: number, side: Side, to: number): Promise<readonly Frame[]> {
    const { version, frames } = this.#solved[side][k];
    for (;;) {
      const { answer, factors } = await this.#workers[k].ask({
        type: this.#isSummed(other[side]) ? 'equations' : 'send',
        block: `${side}-${k}`,
        version,
        to,
      });
      if (!this.#lacks(answer)) return factors;
      const { missing } = answer.header;
      if (missing === 'block') await this.#load(k, side);
      else await this.#givePrevious(k, side, { version, frames });
    }
  }

  async #givePrevious(k: number, side: Side, { version, frames }: Solved): Promise<void> {
    for (const { payload } of frames)
      await this.#workers[k].ask(
        { type: 'previous', block: `${side}-${k}`, version, ...this.#sums },
        payload,
      );
  }

  async #fix(k: number, side: Side, frames: readonly Frame[]): Promise<void> {
    const version = this.#solved[other[side]][0].version;
    for (const { header, payload } of frames) {
      this.rowsSent += header.rows as number;
      const type = this.#isSummed(side) ? 'add' : 'fixed';
      await this.#workers[k].ask({ type, block: `${side}-${k}`, version, ...this.#sums }, payload);
    }
  }

  /** Gives what a new worker lacks, as its answers ask for it. */
  async #solve(
    k: number,
    side: Side,
    { version, exact }: { readonly version: number; readonly exact: boolean },
    fixed: readonly Frame[],
  ): Promise<readonly Frame[]> {
    const block = `${side}-${k}`;
    const before = this.#solved[side][k];
    const gram = this.#grams[other[side]];
    const payload = gram && new Uint8Array(gram.buffer);
    for (;;) {
      const { answer, factors } = await this.#workers[k].ask(
        {
          type: 'solve',
          block,
          fixed: this.#solved[other[side]][0].version,
          previous: before?.version ?? null,
          version,
          exact,
          ...(this.#isSummed(side) && { equations: true }),
          ...this.#sums,
        },
        payload,
      );
      if (!this.#lacks(answer)) return factors;
      const { missing } = answer.header;
      if (missing === 'block') await this.#load(k, side);
      else if (missing === 'previous') await this.#givePrevious(k, side, before);
      else if (missing === 'fixed' || missing === 'equations') await this.#fix(k, side, fixed);
      else throw new Error(`${String(missing)} is missing`);
    }
  }

  async #gram(side: Side, version: number): Promise<void> {
    if (this.#params.implicitPrefs !== true) return;
    const parts = await this.#each(async (k) => {
      const { payload } = (await this.#workers[k].ask({ type: 'gram', block: `${side}-${k}`, version }))
        .answer;
      return new Float64Array(Uint8Array.from(payload).buffer);
    });
    this.#grams = {
      ...this.#grams,
      [side]: parts.reduce((all, one) => all.map((value, at) => value + one[at])),
    };
  }

  #isSummed(side: Side): boolean {
    return this.#exchange === 'equations' && side === 'items';
  }

  async #each<T>(work: (k: number) => Promise<T>): Promise<T[]> {
    if (!this.#isShared) return Promise.all(this.#workers.map((_, k) => work(k)));
    const done: T[] = [];
    for (let k = 0; k < this.#workers.length; k++) done.push(await work(k));
    return done;
  }
}
