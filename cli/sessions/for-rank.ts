import type { DeviceRequest } from '../../api/devices/device-request.ts';
import { bounds } from '../../api/option-values.ts';

/** The flags with device cpu in place of auto if no GPU trains this rank. */
export function forRank<
  Values extends {
    readonly device: DeviceRequest;
    readonly rank?: number | undefined;
  },
>(values: Values): Values {
  return values.device === 'auto' && (values.rank ?? 0) > bounds.gpuRank
    ? { ...values, device: 'cpu' }
    : values;
}
