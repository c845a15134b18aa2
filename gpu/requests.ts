import type { JsonObject } from '../engine/json.ts';
import type { MatrixShape } from '../engine/partition.ts';
import type { SentPartition } from '../engine/threads/wide-views.ts';
import type { WireRows } from './device/resources.ts';
import type { AcquireOptions } from './webgpu/gpu-info.ts';

/** The changes to a partition between two requests, in order. */
export type StoreChange =
  | { readonly put: string; readonly partition: SentPartition }
  | { readonly allocate: string; readonly shape: Omit<MatrixShape, 'stride'> }
  | { readonly release: string }
  /** Its host form is no longer read. */
  | { readonly leave: string };

export type GpuCommand =
  | {
      readonly type: 'open';
      readonly options: AcquireOptions & { readonly memoryBytes?: number | undefined };
    }
  /** Inputs and outputs by the task's names for them: keys of partitions. */
  | {
      readonly type: 'task';
      readonly kernel: string;
      readonly params: JsonObject;
      readonly inputs: Readonly<Record<string, string>>;
      readonly outputs: Readonly<Record<string, string>>;
      readonly clocked?: boolean | undefined;
    }
  /**
   * Gives the partition as `fetched`; `into`: memory for a matrix, which keeps the padding that it has on the
   * device.
   */
  | { readonly type: 'fetch'; readonly key: string; readonly into?: WireRows }
  | { readonly type: 'trim' }
  /** Brings the changes and the collection that come with it, and no work. */
  | { readonly type: 'collect' }
  /** Ends the device, or the thread, as a crash would: for tests. */
  | { readonly type: 'lose'; readonly what: 'device' | 'thread' }
  | { readonly type: 'close' };

export interface GpuRequest {
  readonly changes: readonly StoreChange[];
  readonly command: GpuCommand;
  /** A new number asks for the collection of garbage. */
  readonly collection: number;
}
