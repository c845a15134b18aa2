import type { RunOptions } from '../api/run-session.ts';
import type { RequestedModel } from '../api/serving/served-model.ts';
import { CapacityError, DeviceLostError } from '../engine/errors.ts';
import { type EventSink, noEvents, type ProgressEvent } from '../engine/events.ts';
import { isWorthGpu, noWebGpu, noWebGpuCode, type PageDeviceName, type SearchWork } from './device-choice.ts';
import type { GpuSearches } from './gpu-searches.ts';
import type { PageItems } from './page-items.ts';
import type { PageSession } from './page-session.ts';
import { loadWebGpu, type WebGpuCode } from './web-gpu.ts';

/** A request on either device. */
export interface OnEither<Result> {
  readonly onCpu: () => Promise<Result>;
  readonly onGpu: (searches: GpuSearches) => Promise<Result>;
}

/** The parts of a model that its GPU needs. */
interface GpuModel {
  readonly served: RequestedModel;
  readonly session: PageSession;
  /** The items on the server, if the model was not trained in the page. */
  readonly items: PageItems | undefined;
}

/** The opening of a GPU, for one request or several. */
interface Opening {
  readonly software: boolean;
  readonly searches: Promise<GpuSearches | undefined>;
}

/** The GPU of one model of a page, which is opened when a request first uses it. */
export class ModelGpu {
  readonly #model: GpuModel;
  readonly #code: WebGpuCode | undefined;
  #opening: Opening | undefined;

  /** Without the code of WebGPU, the processor answers all requests. */
  constructor(model: GpuModel, code: WebGpuCode | undefined) {
    [this.#model, this.#code] = [model, code];
  }

  /**
   * Runs a request on the device of that name. `auto`: on the GPU if the work is large enough (isWorthGpu),
   * the browser has WebGPU on a graphics card, and the model fits its memory. On the GPU, the factors of all
   * items are read first. If the GPU is lost, the processor computes, with a warning. Throws UsageError for
   * `gpu` if the browser has no WebGPU, or the model has no code of it.
   */
  async run<Result>(
    device: PageDeviceName,
    work: SearchWork,
    { onCpu, onGpu }: OnEither<Result>,
    { signal, onEvent = noEvents }: RunOptions,
  ): Promise<Result> {
    const searches = await this.#searchesFor(device, work, onEvent);
    if (searches === undefined) return onCpu();
    onEvent({ type: 'note', text: `the request is computed by WebGPU: ${searches.adapter.name}` });
    const { session, items } = this.#model;
    try {
      if (items && !items.loaded) await items.load(session.requestContext({ signal }).signal);
      return await onGpu(searches);
    } catch (error) {
      if (error instanceof DeviceLostError) await this.#drop(searches);
      // For `auto`, a model that is too large for the GPU is no error.
      else if (device === 'gpu' || !(error instanceof CapacityError)) throw error;
      onEvent(continued(error.summary));
      return onCpu();
    }
  }

  /** Undefined if the processor computes the request. */
  async #searchesFor(
    device: PageDeviceName,
    work: SearchWork,
    onEvent: EventSink,
  ): Promise<GpuSearches | undefined> {
    const [code, isAsked] = [this.#code, device === 'gpu'];
    if (code === undefined && isAsked) throw noWebGpuCode();
    if (code === undefined || device === 'cpu' || !(isAsked || isWorthGpu(work))) return undefined;
    try {
      const searches = await this.#open(code, isAsked);
      if (searches === undefined && isAsked) throw noWebGpu();
      return searches;
    } catch (error) {
      if (isAsked || this.#model.session.closed) throw error;
      const reason = error instanceof Error ? error.message : String(error);
      onEvent(continued(`the GPU was not opened (${reason})`));
      return undefined;
    }
  }

  /** `software`: also an adapter that computes on the processor. */
  async #open(code: WebGpuCode, software: boolean): Promise<GpuSearches | undefined> {
    for (;;) {
      const opening = (this.#opening ??= { software, searches: this.#load(code, software) });
      const opened = await opening.searches.catch((error: unknown) => {
        this.#forget(opening);
        throw error;
      });
      if (opened !== undefined) return software || !opened.adapter.software ? opened : undefined;
      this.#forget(opening);
      if (opening.software || !software) return undefined;
    }
  }

  #forget(opening: Opening): void {
    if (this.#opening === opening) this.#opening = undefined;
  }

  async #load(code: WebGpuCode, software: boolean): Promise<GpuSearches | undefined> {
    const { GpuSearches, openPageGpu } = await loadWebGpu(code);
    const gpu = await openPageGpu({ software });
    if (gpu === undefined) return undefined;
    try {
      return new GpuSearches(gpu, this.#model.served, this.#model.session);
    } catch (error) {
      await gpu.close();
      throw error;
    }
  }

  /** Closes a GPU that was lost, once. The next request may open the GPU that the browser gives then. */
  async #drop(lost: GpuSearches): Promise<void> {
    const opening = this.#opening;
    if (opening === undefined || (await opening.searches) !== lost) return;
    this.#forget(opening);
    await lost.close();
  }

  async close(): Promise<void> {
    const opened = await this.#opening?.searches.catch(() => undefined);
    this.#opening = undefined;
    await opened?.close();
  }
}

function continued(problem: string): ProgressEvent {
  return { type: 'warning', text: `${problem}; the request is computed on the processor` };
}
