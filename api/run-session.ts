import type { EventSink } from '../engine/events.ts';
import type { IdForm } from '../engine/keys/find-id.ts';
import type { ExecutionContext } from '../engine/run/context.ts';
import type { SessionDevice } from './devices/open-devices.ts';

/** Options of a single run: a signal that cancels it, and a listener for its events. */
export interface RunOptions {
  /** Cancels the run, which throws CancelledError. Default: none. */
  readonly signal?: AbortSignal;
  /** Receives each event: phases, iterations, notes, warnings. Default: events are dropped. */
  readonly onEvent?: EventSink;
}

/** The session of data sets, models and fits; Session describes its members. */
export interface RunSession {
  readonly memoryBudget: number;
  readonly ids: IdForm | undefined;
  readonly device: SessionDevice;
  readonly closed: boolean;
  context(options?: RunOptions): ExecutionContext;
  /** @internal */
  readonly splitBytes: number | undefined;
  /** @internal */
  readonly opening: boolean;
  /** @internal */
  readonly tidies: boolean;
  /** @internal */
  readonly bounded: boolean;
  /** @internal */
  readonly workers: number;
  /** @internal */
  opened(onEvent?: EventSink): Promise<void>;
  /** @internal */
  requestContext(options?: RunOptions): ExecutionContext;
  /** @internal */
  beginPhase(phase: string): Disposable;
  /** @internal */
  trained(): void;
  /** @internal */
  saving(): void;
}

/** The members of a session that answer requests for single users and items. */
export type RequestSession = Pick<RunSession, 'ids' | 'closed' | 'requestContext'>;
