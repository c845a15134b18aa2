import { cancelledBy } from '../errors.ts';
import type { JsonObject } from '../json.ts';
import type { RunMetrics } from '../metrics.ts';
import { partitionBytes, type PartitionRef, type Partition } from '../partition.ts';
import { HOST, type Place, SPILL } from '../plan/place.ts';
import { spilledSize, type WrittenFile } from '../spill/spilled-partition.ts';
import type { Task, TaskMetrics } from '../task.ts';
import { markedTracer, traceStep, traceTask } from '../trace/trace-steps.ts';
import type { Tracer } from '../trace/trace.ts';
import type { ExecutionContext } from './context.ts';
import type { Device, Executor } from './device.ts';
import { deviceAt, lostAt, hostDevice } from './devices.ts';
import { StepList } from './step-list.ts';
import type { Step } from './step.ts';

/** A partition that exists before the steps, in host memory or at the given place. */
export type Given = readonly [ref: PartitionRef, partition: Partition, at?: Place];

interface RunStepsOptions {
  readonly given?: readonly Given[];
  /** Called with the number of ended slices and the number of all slices, over all tasks. */
  readonly onProgress?: (finished: number, of: number) => void;
  /** True to add the end time of each device's last kernel, by the device's clock. Default: false. */
  readonly clocked?: boolean;
}

/**
 * Executes a list of steps. A step starts as soon as its edges allow; if several are ready, they start in
 * list order. No other code sends work to devices. The first failure cancels the rest. It is thrown once all
 * started steps have ended, so that no task writes after the call. A DeviceLostError names the device.
 */
export async function runSteps(
  steps: readonly Step[],
  ctx: ExecutionContext,
  options: RunStepsOptions = {},
): Promise<StepResults> {
  for (const [ref, partition, at = HOST] of options.given ?? [])
    deviceAt(ctx.executor, at).put(ref, partition);
  return steps.length === 0 ? new StepResults([], []) : new StepRun(steps, ctx, options).run();
}

class StepRun {
  readonly #steps: readonly Step[];
  readonly #ctx: ExecutionContext;
  readonly #onProgress: RunStepsOptions['onProgress'];
  readonly #devices = new Map<string, Device>();
  readonly #failure = new AbortController();
  readonly #signal: AbortSignal;
  readonly #tracer: Tracer | undefined;
  /** The number of edges that each step still waits for. */
  readonly #waits: Int32Array;
  readonly #onSent: (number[] | undefined)[];
  readonly #onEnded: (number[] | undefined)[];
  readonly #values: { step: Step; values: JsonObject[] }[] = [];
  readonly #handed: HandedOut[] = [];
  readonly #ends = new Map<Place, number>();
  /** The last task of each place, if its end time is requested. */
  readonly #clocked = new Map<Place, number>();
  readonly #clocks = new StageClocks();
  readonly #ready: number[] = [];
  readonly #slices: number;
  readonly #done = Promise.withResolvers<StepResults>();
  #finishedSlices = 0;
  #left: number;
  #running = 0;
  #starting = false;
  #failed: { readonly error: unknown; readonly cancelled: boolean } | undefined;

  constructor(steps: readonly Step[], ctx: ExecutionContext, options: RunStepsOptions) {
    [this.#steps, this.#ctx, this.#onProgress] = [steps, ctx, options.onProgress];
    this.#tracer = markedTracer(ctx.metrics.tracer, ctx.within);
    this.#signal = AbortSignal.any([ctx.signal, this.#failure.signal]);
    this.#waits = new Int32Array(steps.length);
    this.#onSent = steps.map(() => undefined);
    this.#onEnded = steps.map(() => undefined);
    this.#left = steps.length;
    let slices = 0;
    for (const { id, at, after, ended, do: action } of steps) {
      const { inOrder } = this.#at(at).info;
      this.#waits[id] = after.length + ended.length;
      for (const before of after) ((inOrder ? this.#onSent : this.#onEnded)[before] ??= []).push(id);
      for (const before of ended) (this.#onEnded[before] ??= []).push(id);
      if (action.kind !== 'task') continue;
      slices += action.slices.length;
      if (options.clocked) this.#clocked.set(at, id);
    }
    this.#slices = slices;
  }

  run(): Promise<StepResults> {
    for (const { id } of this.#steps) if (this.#waits[id] === 0) this.#ready.push(id);
    this.#start();
    return this.#done.promise;
  }

  #at(place: string): Device {
    let device = this.#devices.get(place);
    if (device === undefined) this.#devices.set(place, (device = deviceAt(this.#ctx.executor, place)));
    return device;
  }

  /**
   * Starts every step that is ready, in list order, including steps that become ready because an earlier one
   * ends at once.
   */
  #start(): void {
    if (this.#starting) return;
    this.#starting = true;
    while (this.#ready.length > 0 && !this.#stopped) {
      let first = 0;
      for (let i = 1; i < this.#ready.length; i++) if (this.#ready[i] < this.#ready[first]) first = i;
      this.#begin(this.#steps[this.#ready.splice(first, 1)[0]]);
    }
    this.#starting = false;
    if (this.#running === 0 && (this.#left === 0 || this.#stopped)) this.#end();
  }

  get #stopped(): boolean {
    return this.#failed !== undefined || this.#ctx.signal.aborted;
  }

  #begin(step: Step): void {
    const start = this.#clocks.begin(step.stage);
    let working: Promise<number | void> | undefined;
    try {
      working = this.#perform(step);
    } catch (error) {
      this.#fail(error, step);
      return;
    }
    this.#release(this.#onSent, step.id);
    if (working === undefined) {
      this.#ended(step, start);
      return;
    }
    this.#track(
      working.then(
        (bytes) => this.#ended(step, start, bytes ?? undefined),
        (error: unknown) => this.#fail(error, step),
      ),
    );
  }

  #track(work: Promise<void>): void {
    this.#running++;
    void work.finally(() => {
      this.#running--;
      this.#start();
    });
  }

  #ended(step: Step, start: number, bytes?: number): void {
    if (this.#tracer !== undefined) traceStep(this.#tracer, step, start, bytes);
    this.#left--;
    this.#clocks.end(step.stage);
    this.#release(this.#onEnded, step.id);
  }

  #release(waiting: (number[] | undefined)[], id: number): void {
    for (const next of waiting[id] ?? []) if (--this.#waits[next] === 0) this.#ready.push(next);
    waiting[id] = undefined;
  }

  #fail(error: unknown, { at }: Step): void {
    if (this.#failed === undefined) {
      this.#failed = { error: lostAt(error, at), cancelled: this.#ctx.signal.aborted };
    }
    this.#failure.abort();
  }

  #end(): void {
    this.#clocks.addTo(this.#ctx.metrics);
    if (this.#ctx.signal.aborted && this.#failed?.cancelled !== false)
      this.#done.reject(
        cancelledBy(this.#ctx.signal, { phase: this.#clocks.latest ?? this.#steps[0].stage }),
      );
    else if (this.#failed !== undefined) this.#done.reject(this.#failed.error as Error);
    else
      this.#done.resolve(
        new StepResults(
          this.#values.sort((left, right) => left.step.id - right.step.id),
          this.#handed.sort((left, right) => left.id - right.id),
          this.#ends,
        ),
      );
  }

  /**
   * Performs a step. Returns undefined if the step has already ended. The promise of a step that moves bytes
   * gives their number.
   */
  #perform(step: Step): Promise<number | void> | undefined {
    const { at, stage, do: action } = step;
    const device = this.#at(at);
    switch (action.kind) {
      case 'task': {
        const values: JsonObject[] = action.slices.map(() => ({}));
        this.#values.push({ step, values });
        return this.#runTask(device, step, action.task, action.slices, values);
      }
      case 'allocate':
        device.allocate(action.ref, action.shape);
        return undefined;
      case 'free':
        for (const ref of action.refs) {
          device.release(ref);
          this.#ctx.executor.spilled?.copies.free(at, ref);
        }
        return undefined;
      case 'spill':
        return this.#spill(device, stage, action.refs);
      case 'hand-out':
        return this.#handOut(device, step, action);
      case 'move':
        return this.#move(step, action);
    }
  }

  async #runTask(
    device: Device,
    step: Step,
    task: Task,
    slices: readonly JsonObject[],
    values: JsonObject[],
  ): Promise<void> {
    const clocked = this.#clocked.get(step.at) === step.id;
    const run = async (slice: JsonObject, at: number) => {
      const isWhole = slices.length === 1 && Object.keys(slice).length === 0 && !clocked;
      const result = await device.run(
        isWhole ? task : { ...task, params: { ...task.params, ...slice }, ...(clocked && { clocked }) },
        this.#signal,
      );
      values[at] = result.values;
      if (result.ended !== undefined)
        this.#ends.set(step.at, Math.max(result.ended, this.#ends.get(step.at) ?? 0));
      this.#clocks.worked(step.stage, result.metrics.milliseconds);
      if (this.#tracer !== undefined) traceTask(this.#tracer, step, result);
      this.#count(step.stage, result.metrics);
      this.#onProgress?.(++this.#finishedSlices, this.#slices);
    };
    // If one slice fails, the other slices end early. All of them are awaited.
    const ended = this.#ctx.executor.spilled?.copies.read(step.at, Object.values(task.inputs));
    await Promise.all(
      slices.map((slice, at) => run(slice, at).catch((error: unknown) => this.#fail(error, step))),
    );
    ended?.();
  }

  #count(stage: string, metrics: Partial<TaskMetrics>, runs = 1): void {
    this.#ctx.metrics.add(stage, metrics, runs);
  }

  async #move(
    step: Step,
    { ref, from, to, as, load, wire }: Extract<Step['do'], { readonly kind: 'move' }>,
  ): Promise<number> {
    const [source, target] = [this.#at(from), this.#at(to)];
    const { memory, spilled } = this.#ctx.executor;
    if (to === SPILL) return spilledSize(await writeFrom(source, [ref], [as], this.#ctx.executor));
    const partition =
      from === HOST
        ? memory.get(ref)
        : await source
            .fetch(
              ref,
              wire && {
                form: wire,
                take: (bytes) => memory.take(bytes),
                arriving: (ended) => this.#track(ended.catch((error: unknown) => this.#fail(error, step))),
              },
            )
            .catch((error: unknown) => Promise.reject(lostAt(error, from)));
    const bytes = partitionBytes(partition);
    if (from === SPILL) spilled?.copies.put(target, as, partition);
    else target.put(as, partition);
    if (source.info.ownMemory) this.#count(step.stage, { bytesDown: bytes }, 0);
    if (!load || !target.info.ownMemory) return bytes;
    const result = await target.run(
      { kernel: 'upload', inputs: { data: as }, outputs: {}, params: {} },
      this.#signal,
    );
    if (this.#tracer !== undefined) traceTask(this.#tracer, { ...step, at: to }, result);
    this.#count(step.stage, result.metrics);
    return bytes;
  }

  async #spill(device: Device, stage: string, refs: readonly PartitionRef[]): Promise<number> {
    const start = performance.now();
    const written = await spillFrom(device, refs, this.#ctx.executor);
    const rows = written.reduce((sum, partition) => sum + partition.rows, 0);
    this.#count(stage, { rows, milliseconds: performance.now() - start });
    return spilledSize(written);
  }

  async #handOut(
    device: Device,
    { id, stage }: Step,
    { ref, given, into }: Extract<Step['do'], { readonly kind: 'hand-out' }>,
  ): Promise<number> {
    const files = device.info.place === SPILL ? this.#ctx.executor.spilled : undefined;
    const partition = files?.keep(ref) ?? (await device.fetch(ref, undefined, into));
    this.#handed.push({ id, name: ref.name, partition });
    const bytes = partitionBytes(partition);
    if (device.info.ownMemory && !given) this.#count(stage, { bytesDown: bytes }, 0);
    return bytes;
  }
}

interface HandedOut {
  readonly id: number;
  readonly name: string;
  readonly partition: Partition;
}

/** The values of the tasks in a list of steps, and the partitions handed out. */
export class StepResults {
  /** For each device with its own clock: when its last kernel ended, in milliseconds of that clock. */
  readonly ends: ReadonlyMap<Place, number>;
  readonly #values: readonly { readonly step: Step; readonly values: readonly JsonObject[] }[];
  readonly #handed: readonly HandedOut[];

  constructor(
    values: readonly { readonly step: Step; readonly values: readonly JsonObject[] }[],
    handed: readonly HandedOut[],
    ends: ReadonlyMap<Place, number> = new Map(),
  ) {
    this.ends = ends;
    this.#values = values;
    this.#handed = handed;
  }

  /** All partitions that were handed out, in the order of steps. */
  get handed(): Partition[] {
    return this.#handed.map(({ partition }) => partition);
  }

  /** The partitions with a name that steps handed out, in step order. */
  partitions(name: string): Partition[] {
    return this.#handed.flatMap((one) => (one.name === name ? [one.partition] : []));
  }

  /**
   * The values of the tasks of a stage, or only of one kernel of it, in the order of steps and then of
   * slices.
   */
  of(stage: string, kernel?: string): JsonObject[] {
    return this.#values.flatMap(({ step, values }) =>
      step.stage === stage &&
      (kernel === undefined || (step.do.kind === 'task' && step.do.task.kernel === kernel))
        ? values
        : [],
    );
  }

  /**
   * Like `of`, grouped by part. The part of a task is the partition that it outputs under the name `output`.
   * If several places compute the same part, the values are from the first place.
   */
  byPart(stage: string, kernel: string, output: string): JsonObject[][] {
    const parts: JsonObject[][] = [];
    for (const { step, values } of this.#values) {
      if (step.stage === stage && step.do.kind === 'task' && step.do.task.kernel === kernel)
        parts[step.do.task.outputs[output].partition] ??= [...values];
    }
    return parts;
  }
}

interface StageClock {
  /** The time at which its first step started. */
  readonly start: number;
  /** The time at which its first task started; tasks of other stages may have started earlier. */
  worked: number;
  end: number;
}

/**
 * Measures the wall time of each stage, from the start of its first task to the end of its last step. A stage
 * without tasks is timed from its first step.
 */
class StageClocks {
  readonly #clocks = new Map<string, StageClock>();

  /** Records that a step of the stage starts; returns the time. */
  begin(stage: string): number {
    const start = performance.now();
    if (!this.#clocks.has(stage))
      this.#clocks.set(stage, { start, worked: Number.POSITIVE_INFINITY, end: 0 });
    return start;
  }

  /** Records a task of the given duration that ends now. */
  worked(stage: string, milliseconds: number): void {
    const clock = this.#of(stage);
    clock.worked = Math.min(clock.worked, performance.now() - milliseconds);
  }

  end(stage: string): void {
    this.#of(stage).end = performance.now();
  }

  addTo(metrics: RunMetrics): void {
    for (const [stage, { start, worked, end }] of this.#clocks)
      if (end > 0) metrics.addSpan(stage, Number.isFinite(worked) ? Math.max(start, worked) : start, end);
  }

  /** The stage that started last. */
  get latest(): string | undefined {
    return [...this.#clocks.keys()].at(-1);
  }

  #of(stage: string): StageClock {
    return this.#clocks.get(stage) as StageClock;
  }
}

/** Writes partitions of a device to a file, under the names `as`; returns their references. */
async function writeFrom(
  device: Device,
  refs: readonly PartitionRef[],
  as: readonly PartitionRef[],
  executor: Pick<Executor, 'devices' | 'spilled'>,
): Promise<readonly Partition[]> {
  const { place, ownMemory } = device.info;
  const { spilled } = executor;
  if (spilled === undefined) throw new Error(`there is no room to spill partitions of ${place}`);
  const write = (from: Device, names: readonly PartitionRef[], layout?: string) =>
    spilled.write(as, async (file) => {
      const inputs = Object.fromEntries(names.entries());
      const params = { file, ...(layout === undefined ? {} : { layout }) };
      const { values } = await from.run({ kernel: 'spill', inputs, outputs: {}, params });
      return values as WrittenFile;
    });
  if (place !== HOST && !ownMemory) return write(device, refs);
  // Only threads of the CPU write files: they get the host form, under a layout that the CPU does not copy.
  const host = hostDevice(executor);
  const [ref, ...others] = refs;
  if (others.length > 0) throw new Error(`partitions of ${place} are written one by one`);
  const fetched = await device.fetch(ref);
  host.put(as[0], { ...fetched, layout: SENT });
  try {
    return await write(host, as, fetched.layout);
  } finally {
    host.release(as[0]);
  }
}

const SENT = 'rows-to-write';

/** Moves partitions of a device to a file. Tasks read them there until they are freed. */
async function spillFrom(
  device: Device,
  refs: readonly PartitionRef[],
  executor: Pick<Executor, 'devices' | 'spilled'>,
): Promise<readonly Partition[]> {
  const written = await writeFrom(device, refs, refs, executor);
  for (const [i, ref] of refs.entries()) {
    device.release(ref);
    device.put(ref, written[i]);
    executor.spilled?.copies.add(device.info.place, ref, written[i]);
  }
  return written;
}

/** Stores partitions of this thread at a place. Only matrices are copied, to the place's own memory. */
export async function giveTo(
  ctx: ExecutionContext,
  at: Place,
  partitions: readonly (readonly [PartitionRef, Partition])[],
): Promise<void> {
  await runSteps([], ctx, { given: partitions.map(([ref, partition]) => [ref, partition, at]) });
}

/** Frees partitions at a place. */
export async function freeAt(
  ctx: ExecutionContext,
  stage: string,
  at: Place,
  refs: readonly PartitionRef[],
): Promise<void> {
  const steps = new StepList({});
  steps.free(stage, at, refs);
  await runSteps(steps.steps, ctx);
}

/** Fetches partitions from a place to this thread, in the order of their names, and releases them there. */
export async function takeFrom(
  ctx: ExecutionContext,
  stage: string,
  at: Place,
  refs: readonly PartitionRef[],
): Promise<Partition[]> {
  const steps = new StepList({});
  for (const ref of refs) steps.handOut(stage, ref, at);
  steps.free(stage, at, refs);
  return (await runSteps(steps.steps, ctx)).handed;
}
