import type { JsonObject } from '../engine/json.ts';
import type { MatrixShape } from '../engine/partition.ts';
import type { SentPartition } from '../engine/threads/wide-views.ts';
import type { WireRows } from './device/resources.ts';
import type { AcquireOptions } from './webgpu/gpu-info.ts';

/** A change to the partitions of the GPU's thread, sent with the next request. */
export type StoreChange =
  | { readonly put: string; readonly partition: SentPartition }
  | { readonly allocate: string; readonly shape: Omit<MatrixShape, 'stride'> }
  | { readonly release: string }
  /** The thread frees the partition's copy in host memory. */
  | { readonly leave: string };

export type GpuCommand =
  | {
      readonly type: 'open';
      readonly options: AcquireOptions & { readonly memoryBytes?: number | undefined };
    }
  /** `inputs` and `outputs`: keys of partitions by the task's names. */
  | {
      readonly type: 'task';
      readonly kernel: string;
      readonly params: JsonObject;
      readonly inputs: Readonly<Record<string, string>>;
      readonly outputs: Readonly<Record<string, string>>;
      readonly clocked?: boolean | undefined;
    }
  /**
   * Returns the partition as `fetched`. `into`: memory to which a matrix is copied, with the padding that it
   * has on the device. If this has a list of arrived pieces, the request ends when all copies are submitted
   * to the GPU, and a request `await-fetch` with the same `number` must follow.
   */
  | { readonly type: 'fetch'; readonly key: string; readonly into?: WireRows; readonly number?: number }
  /** Ends when the fetch with this number has written all its rows to memory files. */
  | { readonly type: 'await-fetch'; readonly number: number }
  | { readonly type: 'trim' }
  /**
   * Does nothing itself, but like every request it delivers pending changes and a request to collect garbage.
   */
  | { readonly type: 'collect' }
  /** Ends the device, or the thread, as a crash would: for tests. */
  | { readonly type: 'lose'; readonly what: 'device' | 'thread' }
  | { readonly type: 'close' };

export interface GpuRequest {
  readonly changes: readonly StoreChange[];
  readonly command: GpuCommand;
  /** Number of garbage collections requested so far. The thread collects when it has increased. */
  readonly collection: number;
}
