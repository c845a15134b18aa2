import type { ParquetBackendName } from '../connectors/parquet/backend.ts';
import { UsageError } from '../engine/errors.ts';
import { shown } from '../engine/format.ts';
import type { IdForm } from '../engine/keys/find-id.ts';
import { spelled } from '../engine/nearest.ts';
import { nearestName } from '../operators/params/nearest-name.ts';
import { checkRunOptions, checkIdForm } from './check-options.ts';
import { checkDevice, checkFakeDevices, type DeviceRequest } from './devices/device-request.ts';
import { refuseThread } from './inspect/user-modules.ts';
import { Profile } from './reports/profile.ts';

export interface SessionOptions {
  /**
   * The device that holds factors and runs kernels: `auto` takes a hardware GPU if there is one, else the
   * CPU; `gpu` any adapter, even a software one; `gpu:0,1` several cards, by number. Default 'auto'.
   */
  readonly device?: DeviceRequest;
  /** CPU threads, 1 or more. Default: the number of the machine's cores; with a GPU three quarters of it. */
  readonly workers?: number;
  /**
   * Limit of the resident memory of the whole process, in bytes, or a size such as '4GiB'. Default: the
   * machine's memory, or 0.8 of the limit of its container.
   */
  readonly memoryBudget?: string | number;
  /**
   * Limit of the used GPU memory, in bytes or as '40GiB', since WebGPU does not report its size. Default: no
   * limit, until the GPU refuses an allocation.
   */
  readonly deviceMemory?: string | number;
  /**
   * Folder, created if missing, for ratings that do not fit into memoryBudget while they are loaded and, by
   * ALS, trained on, and for ALS's factors that do not fit; removed again at the end. A model whose factors
   * are there must be saved before its session closes. Default: the system's folder for temporary files.
   */
  readonly spillDir?: string;
  /** The library for reading and writing Parquet. Default 'parquet-wasm'. */
  readonly parquetBackend?: ParquetBackendName;
  /**
   * The form of integer ids in results of the session's models. By default numbers if all ids of a side are
   * safe integers, else bigints; or always 'number', 'bigint' or 'string'. With 'number', training on an
   * unsafe id or loading a model with one throws UsageError. Text ids stay strings, and Arrow batches keep
   * int64.
   */
  readonly ids?: IdForm;
  /** Measures the time of this session's work by phase. Default: not measured. */
  readonly profile?: Profile;
  /** @internal Stored bytes of a split of a source; smaller sources are read as one stream. */
  readonly splitBytes?: number;
  /** @internal Number of devices to simulate with one, for tests and demonstrations. */
  readonly fakeDevices?: number;
  /**
   * @internal True if the session runs one training and then only saves its model. GPUs are closed as soon
   * as the factors are in host memory. Released memory is not collected, unless a memory budget was given.
   */
  readonly once?: boolean;
  /** @internal True if all runs must read the same versions of files, as the runs of one command must. */
  readonly oneVersion?: boolean;
  /**
   * @internal OpeningDevices started with the same options; the session closes them. A GPU may still be
   * opening; `opened` waits for it.
   */
  readonly opening?: object | undefined;
  /**
   * Cancels the opening: a driver may be slow, or hang. Runs in the session have their own signals. Default:
   * none.
   */
  readonly signal?: AbortSignal;
}

/** @internal */
type CheckedOptions = { readonly device: DeviceRequest } & {
  readonly [
    Name in 'deviceMemory' | 'fakeDevices' | 'profile' | 'ids' | 'spillDir' | 'signal'
  ]: SessionOptions[Name];
};

const optionNames = [
  'device',
  'workers',
  'memoryBudget',
  'deviceMemory',
  'spillDir',
  'parquetBackend',
  'ids',
  'profile',
  'signal',
] as const satisfies readonly (keyof SessionOptions)[];

/** @internal Throws UsageError for an unknown option or an invalid value. */
export function checkSessionOptions(
  { device, deviceMemory, fakeDevices, profile, ids, spillDir, signal }: CheckedOptions,
  unknown: object,
): void {
  refuseThread();
  for (const name of Object.keys(unknown))
    throw new UsageError(`unknown session option ${name}`, {
      advice: spelled(nearestName(name, optionNames), `There are: ${optionNames.join(', ')}`),
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
    throw new UsageError('deviceMemory cannot be used with device cpu', {
      advice: 'memoryBudget bounds the memory of the process',
    });
  if (spillDir !== undefined && (typeof spillDir !== 'string' || spillDir === ''))
    throw new UsageError(`spillDir must be the path of a folder, got ${shown(spillDir)}`);
}
