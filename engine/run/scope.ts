import { CancelledError, throwIfAborted } from '../errors.ts';
import { HOST } from '../plan/place.ts';
import type { ExecutionContext } from './context.ts';
import { Holdings } from './holdings.ts';

/** A stage of a scope, given as an input to the stages that need its result. */
export interface ScopeStage<Result> {
  readonly name: string;
  /** Its position in the scope's list; undefined for a constant. */
  readonly number?: number;
  readonly result: Promise<Result>;
}

/** A stage whose result is already known. Other runs have a stage with real work in its place. */
export function constant<Result>(name: string, result: Result): ScopeStage<Result> {
  return { name, result: Promise.resolve(result) };
}

/** The stages whose results a stage needs, by the names under which it receives them. */
export type StageInputs = Readonly<Record<string, ScopeStage<unknown>>>;

export type ResultsOf<Inputs extends StageInputs> = {
  readonly [Name in keyof Inputs]: Inputs[Name] extends ScopeStage<infer Result> ? Result : never;
};

export interface StageOptions<Results> {
  /** Stages that must end before it starts, in addition to its inputs. Their results are not used. */
  readonly after?: readonly ScopeStage<unknown>[];
  /**
   * The host memory that it needs; used if memory is limited. Default: unknown, so it runs while no other
   * admitted stage runs. 'none': it needs no admission.
   */
  readonly need?: 'none' | ((results: Results) => StageNeed | undefined);
}

export interface SpeculationOptions<Results, Result> extends StageOptions<Results> {
  /** Frees the result of a wrong guess; see Scope.discard. */
  readonly undo?: (made: Result, ctx: ExecutionContext) => Promise<void>;
}

export interface ScopeOptions {
  /** Bytes of host memory that the stages may use together. Default: no limit. */
  readonly capacityBytes?: number | undefined;
  /** True to record the peak memory of each place in the metrics. */
  readonly measured?: boolean;
}

interface AddedStage<Inputs extends StageInputs> {
  readonly name: string;
  readonly inputs: Inputs;
  readonly options: StageOptions<ResultsOf<Inputs>>;
  readonly speculative?: boolean;
}

type Work<Results, Result> = (results: Results, ctx: ExecutionContext) => Result | Promise<Result>;

/**
 * A group of stages in a run's graph of work. The work of a stage is a function, which runs steps on devices
 * or adds further stages. A stage starts when the stages that it needs have ended. If memory is limited,
 * there must also be room for it and for all unfinished stages before it.
 *
 * A scope has its own signal, partitions and failure. The first failure cancels the rest. `Scope.within`
 * throws it once all started work has ended, so that nothing still runs or stays allocated. The code that
 * opened the scope may recover from the failure.
 */
export class Scope {
  /** For work in the scope: its signal fires when the scope fails or ends. */
  readonly ctx: ExecutionContext;
  readonly #admission: Admission | undefined;
  readonly #ending = new AbortController();
  /** Rejects when the scope ends. Stages that still wait for their inputs then end too. */
  readonly #ended: Promise<never>;
  readonly #working = new Set<Promise<unknown>>();
  /** Stages that have their inputs and wait for memory, sorted by `turn`. */
  #waiting: { readonly turn: number; readonly begin: () => void }[] = [];
  readonly #undo = new Map<ScopeStage<unknown>, (made: unknown, ctx: ExecutionContext) => Promise<void>>();
  #failed: { readonly number: number; readonly error: unknown } | undefined;
  #stages = 0;

  private constructor(ctx: ExecutionContext, { capacityBytes }: ScopeOptions) {
    this.ctx = { ...ctx, signal: AbortSignal.any([ctx.signal, this.#ending.signal]) };
    this.#admission = capacityBytes === undefined ? undefined : new Admission(capacityBytes);
    const ended = Promise.withResolvers<never>();
    ended.promise.catch(() => undefined);
    this.#ending.signal.addEventListener('abort', () => ended.reject(new CancelledError()));
    this.#ended = ended.promise;
  }

  /**
   * Runs work in a scope with its own partitions. Once the work has its result, stages that are still
   * running are cancelled: their results are not needed.
   */
  static within<Result>(
    ctx: ExecutionContext,
    work: (scope: Scope) => Promise<Result>,
    options: ScopeOptions = {},
  ): Promise<Result> {
    const hold = options.measured ? Holdings.measured : Holdings.within;
    return hold(ctx, async (held) => {
      const scope = new Scope(held, options);
      try {
        return await work(scope);
      } catch (error) {
        scope.#fail(Number.POSITIVE_INFINITY, error);
      } finally {
        await scope.#end();
      }
      throw scope.#failed?.error;
    });
  }

  /**
   * Adds a stage. Add stages in the order in which a single thread would run them: memory is granted in that
   * order, and if two stages fail, the failure of the earlier one is thrown.
   */
  stage<Inputs extends StageInputs, Result>(
    name: string,
    inputs: Inputs,
    work: Work<ResultsOf<Inputs>, Result>,
    options: StageOptions<ResultsOf<Inputs>> = {},
  ): ScopeStage<Result> {
    const number = this.#stages;
    return this.#add({ name, inputs, options }, async (results, ctx) => {
      try {
        return await work(results, ctx);
      } catch (error) {
        this.#fail(number, error);
        throw error;
      }
    });
  }

  /**
   * Adds a stage that works on a guess. Its failure does not fail the scope: its result is then undefined,
   * and the stages that would have used it do the work themselves.
   */
  speculate<Inputs extends StageInputs, Result>(
    name: string,
    inputs: Inputs,
    work: Work<ResultsOf<Inputs>, Result>,
    { undo, ...options }: SpeculationOptions<ResultsOf<Inputs>, Result> = {},
  ): ScopeStage<Result | undefined> {
    const added = this.#add({ name, inputs, options, speculative: true }, work);
    const stage: ScopeStage<Result | undefined> = { ...added, result: added.result.catch(() => undefined) };
    if (undo !== undefined) this.#undo.set(stage, (made, ctx) => undo(made as Result, ctx));
    return stage;
  }

  /** Undoes speculations whose guess was wrong, once they have ended. */
  async discard(stages: readonly ScopeStage<unknown>[]): Promise<void> {
    for (const stage of stages) {
      const made = await stage.result;
      const undo = this.#undo.get(stage);
      this.#undo.delete(stage);
      if (made !== undefined) await undo?.(made, this.ctx);
    }
  }

  #add<Inputs extends StageInputs, Result>(
    added: AddedStage<Inputs>,
    work: Work<ResultsOf<Inputs>, Result>,
  ): ScopeStage<Result> {
    const { name, inputs, options } = added;
    const { after = [], need } = options;
    const number = this.#stages++;
    const turn = need === 'none' ? undefined : this.#admission?.add();
    const run = async (): Promise<Result> => {
      const names = Object.keys(inputs);
      try {
        const needed = Promise.all(after.map(({ result }) => result));
        const inputsOf = Promise.all(names.map((input) => inputs[input].result));
        const [found] = await Promise.race([Promise.all([inputsOf, needed]), this.#ended]);
        const results = Object.fromEntries(names.map((input, at) => [input, found[at]])) as ResultsOf<Inputs>;
        if (turn !== undefined) await this.#admit(turn, need === 'none' ? undefined : need?.(results));
        throwIfAborted(this.ctx.signal, name);
        return await this.#traced(number, added, (ctx) => work(results, ctx));
      } finally {
        if (turn !== undefined) this.#leave(turn);
      }
    };
    return { name, number, result: this.follow(run()) };
  }

  /**
   * The scope waits for this work when it ends. Only the code that awaits the work gets its failure, which
   * never becomes an unhandled rejection.
   */
  follow<Result>(work: Promise<Result>): Promise<Result> {
    const ended = work.then(
      () => undefined,
      () => undefined,
    );
    this.#working.add(ended);
    void ended.then(() => this.#working.delete(ended));
    return work;
  }

  /** Waits for memory for a stage; `turn` is its number in the admission. */
  async #admit(turn: number, need: StageNeed | undefined): Promise<void> {
    if (need !== undefined) this.#admission?.setNeed(turn, need);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push({ turn, begin: resolve });
    this.#waiting.sort((left, right) => left.turn - right.turn);
    this.#beginAdmitted();
    await promise;
  }

  #beginAdmitted(): void {
    const ending = this.#ending.signal.aborted;
    this.#waiting = this.#waiting.filter(({ turn, begin }) => {
      if (!ending && this.#admission?.mayBegin(turn) !== true) return true;
      this.#admission?.begin(turn);
      begin();
      return false;
    });
  }

  #leave(turn: number): void {
    this.#admission?.end(turn);
    this.#beginAdmitted();
  }

  async #traced<Inputs extends StageInputs, Result>(
    number: number,
    { name, inputs, options: { after = [] }, speculative }: AddedStage<Inputs>,
    work: (ctx: ExecutionContext) => Result | Promise<Result>,
  ): Promise<Result> {
    const mark = speculative && { speculative };
    const start = performance.now();
    try {
      return await work({ ...this.ctx, within: { name, ...mark } });
    } finally {
      const needs = [...Object.values(inputs), ...after].filter((one) => one.number !== undefined);
      this.ctx.metrics.tracer?.span({
        place: HOST,
        row: 'stages',
        name,
        start,
        end: performance.now(),
        args: { number, needs: needs.map((one) => one.name).join(', '), ...mark },
      });
    }
  }

  #fail(number: number, error: unknown): void {
    const isEarlier = this.#failed !== undefined && number < this.#failed.number;
    // A stage that the first failure cancelled may itself fail with the signal's reason.
    const isCancel = error instanceof CancelledError || error === this.ctx.signal.reason;
    if (this.#failed === undefined || (isEarlier && !isCancel)) this.#failed = { number, error };
    this.#ending.abort();
    this.#beginAdmitted();
  }

  /** Cancels what still runs, and waits for its end. */
  async #end(): Promise<void> {
    this.#ending.abort();
    this.#beginAdmitted();
    while (this.#working.size > 0) await Promise.all(this.#working);
  }
}

/** The memory of a stage of a scope, in bytes. */
export interface StageNeed {
  /**
   * The peak of bytes allocated while the stage runs, in addition to the bytes that earlier stages left
   * allocated.
   */
  readonly during: number;
  /** The bytes that it leaves allocated; at most `during`. */
  readonly left: number;
}

/** A stage of unknown need runs while no other does. */
type Need = StageNeed | 'unknown';

type State = 'waiting' | 'working' | 'ended';

/**
 * Decides which stages may run at the same time within a memory limit (banker's algorithm). A stage may
 * start before earlier stages have ended, but only if all of them could still run afterwards within the
 * limit, one by one. If the whole list fits the limit when its stages run one by one, then the limit is
 * never exceeded and there is no deadlock, for every order in which stages end.
 */
export class Admission {
  readonly #capacity: number;
  readonly #needs: Need[] = [];
  readonly #states: State[] = [];

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** Adds a stage of unknown bytes at the end of the list; returns its number. */
  add(): number {
    this.#states.push('waiting');
    return this.#needs.push('unknown') - 1;
  }

  /** Sets the need of a waiting stage. */
  setNeed(stage: number, need: StageNeed): void {
    this.#needs[stage] = need;
  }

  /** Upper bound of the bytes that running and ended stages have allocated at this moment. */
  get live(): number {
    const bytesOf = (need: Need, state: State) =>
      need === 'unknown' || state === 'waiting' ? 0 : state === 'working' ? need.during : need.left;
    return this.#needs.reduce((sum, need, at) => sum + bytesOf(need, this.#states[at]), 0);
  }

  mayBegin(stage: number): boolean {
    const need = this.#needs[stage];
    const working = this.#states.flatMap((state, at) => (state === 'working' ? [this.#needs[at]] : []));
    // If no stage is running, the next stage of the list may always start. If it alone exceeds the limit, no
    // order of the stages could respect the limit.
    if (working.length === 0 && this.#states.slice(0, stage).every((state) => state === 'ended')) return true;
    if (need === 'unknown' || working.includes('unknown')) return false;
    return this.#fits(stage, this.live + need.during);
  }

  /** True if all earlier waiting stages fit, one by one, while `inUse` bytes are allocated. */
  #fits(stage: number, inUse: number): boolean {
    let live = inUse;
    for (let at = 0; at < stage && live <= this.#capacity; at++) {
      if (this.#states[at] !== 'waiting') continue;
      const need = this.#needs[at];
      if (need === 'unknown' || live + need.during > this.#capacity) return false;
      live += need.left;
    }
    return live <= this.#capacity;
  }

  begin(stage: number): void {
    this.#states[stage] = 'working';
  }

  end(stage: number): void {
    this.#states[stage] = 'ended';
  }
}
