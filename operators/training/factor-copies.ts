import type { Partition, StoredColumn } from '../../engine/partition.ts';
import { hostMeter } from '../../engine/run/memory-meter.ts';
import type { StepResults } from '../../engine/run/run-steps.ts';
import { handedBytes, isInFiles } from './planned-training.ts';
import type { Rounds, Trained } from './rounds.ts';
import type { HostCopy, TrainingIteration, LoopOptions, Training } from './training.ts';

/**
 * Copies of the factors to the host may take this share of a run's time: the slower a copy, the longer the
 * time to the next one.
 */
const COPY_SHARE = 0.05;

/** Bytes per second that the first copy is assumed to reach, before one was measured. */
const COPY_RATE = 1.7e9;

/** Least seconds between two copies, and so about the work that is lost if a device fails. */
const COPY_SECONDS = 2;

/** Factors after a round: on devices, or in host memory if a run continues an earlier one. */
export type State<Factors> = Trained | { readonly number: number; readonly factors: Factors };

/** The newest and the best factors of a run, and the reports of its iterations. */
export interface RunState<Factors> {
  readonly good: State<Factors>;
  readonly best: State<Factors>;
  readonly iterations: readonly TrainingIteration[];
}

/** Copies the factors of a round from the devices to the host. */
type Source<Factors> = Pick<Rounds<Factors>, 'training' | 'toHost'>;

/** Copies of a run's factors in host memory. If a device is lost, the run continues from the last copy. */
export class FactorCopies<Factors> {
  last: HostCopy<Factors> | undefined;
  readonly #options: Pick<LoopOptions<Factors>, 'copySeconds' | 'checkpoints'>;
  readonly #alive: (readonly Partition[])[] = [];
  /** The files of copies. */
  readonly #files = new Map<Factors, readonly StoredColumn[]>();
  #taken = performance.now();
  #wait: number;

  constructor(options: Pick<LoopOptions<Factors>, 'copySeconds' | 'checkpoints'>) {
    this.#options = options;
    this.#wait = options.copySeconds ?? COPY_SECONDS;
    this.last = options.checkpoints?.resume();
  }

  /**
   * Before the first copy: estimates its time from its bytes, and from that the interval between copies. Not
   * needed if no device can lose factors. Factors in files are copied for checkpoints only.
   */
  expect({ bound }: Training<Factors>): void {
    if (isInFiles(bound)) this.#wait = Infinity;
    else if (!isLosable(bound) || this.#options.copySeconds !== undefined) return;
    else {
      const seconds = handedBytes(bound.phases.end, bound.datasets) / COPY_RATE;
      this.#wait = Math.max(this.#wait, seconds / COPY_SHARE);
    }
  }

  /** True if losing a device now could cost much work. Slow copies are made less often. */
  isDue(): boolean {
    return performance.now() - this.#taken >= 1000 * this.#wait;
  }

  /** Copies the factors to the host. */
  async renew(source: Source<Factors>, state: RunState<Factors>): Promise<void> {
    const start = performance.now();
    this.last = await this.make(source, state);
    const seconds = (this.#taken - start) / 1000;
    this.#wait = Math.max(this.#options.copySeconds ?? COPY_SECONDS, seconds / COPY_SHARE);
  }

  async make(source: Source<Factors>, state: RunState<Factors>): Promise<HostCopy<Factors>> {
    const { good, best, iterations } = state;
    const copyOf = async (one: State<Factors>) => ({
      iteration: one.number,
      factors: await this.factorsOf(source, one),
    });
    const older = best.number === good.number ? {} : { best: await copyOf(best) };
    const newest = await copyOf(good);
    this.#taken = performance.now();
    const course = source.training.course?.();
    return { ...newest, ...older, iterations: [...iterations], ...(course && { course }) };
  }

  /**
   * The factors of a state in host memory. They are fetched only if no copy has them. `last`: no round
   * follows.
   */
  async factorsOf(source: Source<Factors>, state: State<Factors>, last = false): Promise<Factors> {
    const copied = [this.last, this.last?.best].find((copy) => copy?.iteration === state.number);
    return (
      copied?.factors ??
      ('versions' in state ? this.taken(source.training, source.toHost(state), last) : state.factors)
    );
  }

  /**
   * Waits until the factors of a fetch are in host memory. If the copy may be in memory at the same time as
   * others, it is counted, so that old copies are freed.
   */
  async taken(training: Training<Factors>, fetched: Promise<StepResults>, last = false): Promise<Factors> {
    const results = await fetched;
    if (isLosable(training.bound) || (this.#options.checkpoints !== undefined && !last))
      this.#count(results.handed);
    const factors = training.factors(results, last);
    const files = results.handed.flatMap(({ stored }) => stored ?? []);
    if (files.length > 0) this.#files.set(factors, files);
    return factors;
  }

  /** Frees copies that nothing reads any more, once checkpoints are written: all but the last. */
  free({ bound }: Training<Factors>): void {
    if (!isLosable(bound)) this.drop();
    for (const [factors, files] of this.#files) {
      if (factors === this.last?.factors || factors === this.last?.best?.factors) continue;
      for (const file of files) file.drop();
      this.#files.delete(factors);
    }
  }

  drop(): void {
    this.#alive.splice(0).forEach(dropCopy);
  }

  /** Counts a new copy, and frees the oldest one: at most two copies are in memory. */
  #count(partitions: readonly Partition[]): void {
    if (this.#alive.length === 2) this.#alive.splice(0, 1).forEach(dropCopy);
    for (const partition of partitions) hostMeter.hold(partition);
    this.#alive.push(partitions);
  }
}

/** True if devices have their own memory, which can be lost. */
export function isLosable({ devices }: Training<unknown>['bound']): boolean {
  return devices.some(({ ownMemory }) => ownMemory);
}

function dropCopy(partitions: readonly Partition[]): void {
  for (const partition of partitions) hostMeter.drop(partition);
}
