import type { JsonObject } from '../../engine/json.ts';
import type { Model } from '../model.ts';
import type { Session } from '../session.ts';
import type { SessionOptions } from '../session-options.ts';

/** The parts of a worker that differ from run to run. */
export interface ServeOptions {
  readonly machine: Omit<SessionOptions, 'signal'>;
  readonly signal: AbortSignal;
  /** The version of this package. */
  readonly version: string;
  /** Makes the frame `report` of a trained model. */
  readonly report: (model: Model, session: Session) => JsonObject;
  /** Describes an error for the parent: code, exit code, texts. */
  readonly failure: (error: unknown) => JsonObject;
  /** Starts signs of life at an interval that the parent has chosen. */
  readonly beat: (milliseconds: number) => void;
}
