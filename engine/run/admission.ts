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
