import type { Id, JsonObject } from '../../index.ts';
import type { Fields, FieldValues } from './fields.ts';
import type { LoadedModel } from './loaded-model.ts';

/** The parts of a request that a route reads. */
export interface RouteInput<Q extends Fields, B extends Fields> {
  /** The ids in the path, by name. */
  readonly path: Readonly<Record<string, Id>>;
  readonly query: FieldValues<Q>;
  readonly body: FieldValues<B>;
  /** Fires if the request takes too long or the client has gone. */
  readonly signal: AbortSignal;
}

/** A route as data: the server answers by it, and the OpenAPI document describes it. */
export interface RouteSpec<Q extends Fields, B extends Fields> {
  readonly method: 'GET' | 'POST';
  /** Ids of the path are written {user}. */
  readonly path: string;
  readonly summary: string;
  readonly query: Q;
  readonly body: B;
  /** Schema of the answer. */
  readonly answer: JsonObject;
  readonly respond: (input: RouteInput<Q, B>, loaded: LoadedModel) => Promise<object>;
}

export interface Route extends Omit<RouteSpec<Fields, Fields>, 'respond'> {
  readonly respond: (input: RouteInput<Fields, Fields>, loaded: LoadedModel) => Promise<object>;
}

/** A route, independent of the types of its fields. */
export function defineRoute<Q extends Fields, B extends Fields>({
  respond,
  ...rest
}: RouteSpec<Q, B>): Route {
  return { ...rest, respond: (input, loaded) => respond(input as RouteInput<Q, B>, loaded) };
}
