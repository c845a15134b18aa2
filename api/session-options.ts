import type { ParquetBackendName } from '../connectors/parquet/backend.ts';
import type { IdForm } from '../engine/keys/id-form.ts';
import { UsageError } from '../engine/errors.ts';
import { checkRunOptions, checkIdForm } from './check-options.ts';
import { shown } from '../engine/shown.ts';
import { checkDevice, checkFakeDevices, type DeviceRequest } from './devices/device-request.ts';
import { refuseThread } from './inspect/user-modules.ts';
import { Profile } from './reports/profile.ts';

export interface SessionOptions {
  /**
   * The device that holds factors and runs kernels: `auto` takes a hardware GPU where there is one, else the
   * CPU; `gpu` any adapter, even a software one; `gpu:0,1` several cards, by number. Default 'auto'.
   */
  readonly device?: DeviceRequest;
  /** CPU threads, 1 or more. Default: the number of the machine's cores; with a GPU three quarters of it. */
  readonly workers?: number;
  /**
   * Bound on the resident memory of the whole process, in bytes, or a size such as '4GiB'. Default: the
   * machine's memory.
   */
  readonly memoryBudget?: string | number;
  /**
   * Bound on the GPU's memory that is used, in bytes or as '40GiB', since WebGPU does not give its size.
   * Default: no bound, until the GPU refuses.
   */
  readonly deviceMemory?: string | number;
  /**
   * Folder, made where it is missing, for ratings that do not fit into memoryBudget while they are loaded
   * and, by ALS, trained on; removed again at the end. Default: the system's folder for temporary files.
   */
  readonly spillDir?: string;
  /** The library that Parquet is read and written with. Default 'parquet-wasm'. */
  readonly parquetBackend?: ParquetBackendName;
  /**
   * The form of integer ids that the session's models give: numbers where all ids of a side are safe
   * integers, else bigints (default), or always 'number', 'bigint' or 'string'. With 'number', training on an
   * unsafe id and loading a model with one throw UsageError. Ids that are text stay strings, and Arrow
   * batches keep int64.
   */
  readonly ids?: IdForm;
  /** Measures where the time of this session's work goes. Default: not measured. */
  readonly profile?: Profile;
  /** @internal Stored bytes of a split of a source; sources with no more come in one stream. */
  readonly splitBytes?: number;
  /** @internal So many devices in the place of one, for tests and demonstrations. */
  readonly fakeDevices?: number;
  /**
   * @internal True where nothing but saving follows on one training: GPUs are closed as soon as its factors
   *   are in host memory, and memory that is not bounded is left as it is.
   */
  readonly once?: boolean;
  /**
   * @internal OpeningDevices that have begun with the same options; the session closes them. It is given while
   *   a GPU is still being opened; `opened` waits for that.
   */
  readonly opening?: object | undefined;
  /**
   * Cancels the opening: a driver may be slow, or hang. Runs in the session take signals of their own.
   * Default: none.
   */
  readonly signal?: AbortSignal;
}

/** @internal */
type CheckedOptions = { readonly device: DeviceRequest } & {
  readonly [
    Name in 'deviceMemory' | 'fakeDevices' | 'profile' | 'ids' | 'spillDir' | 'signal'
  ]: SessionOptions[Name];
};

/** @internal Throws UsageError for an option that is unknown, or whose value cannot be. */
export function checkSessionOptions(
  { device, deviceMemory, fakeDevices, profile, ids, spillDir, signal }: CheckedOptions,
  unknown: object,
): void {
  refuseThread();
  for (const name of Object.keys(unknown))
    throw new UsageError(`unknown session option ${name}`, {
      advice:
        'There are: device, workers, memoryBudget, deviceMemory, spillDir, parquetBackend, ids, profile, signal',
    });
  checkRunOptions('Session.create', { signal });
  checkDevice(device);
  checkFakeDevices(fakeDevices, device);
  checkIdForm(ids);
  if (profile !== undefined && !(profile instanceof Profile))
    throw new UsageError(`profile must be a Profile, got ${shown(profile)}`, {
      advice: 'Make one by new Profile()',
    });
  if (deviceMemory !== undefined && device === 'cpu')
    throw new UsageError('deviceMemory cannot act with device cpu', {
      advice: 'memoryBudget bounds the memory of the process',
    });
  if (spillDir !== undefined && (typeof spillDir !== 'string' || spillDir === ''))
    throw new UsageError(`spillDir must be the path of a folder, got ${shown(spillDir)}`);
}
