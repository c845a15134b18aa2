import type { PhysicalPlan } from '../../../engine/plan/physical-plan.ts';
import type { PlanDevices } from '../../../engine/run/devices.ts';
import type { RatingsProfile } from '../../planner/profile.ts';
import type { SizedAlsParams } from '../implicit/sized-params.ts';
import type { AlsChoices } from '../kernel-choices.ts';
import type { AlsGrid } from './grid.ts';
import { planOfGrid } from './plan-of-grid.ts';
import { type AlsPlanOptions, type AlsProblem, alsProblem } from './problem.ts';
import { requireHost } from './refusals.ts';

/** Makes plans of one training for different grids and devices. */
export class PlannedGrids {
  readonly params: SizedAlsParams;
  readonly #profile: RatingsProfile;
  readonly #devices: PlanDevices;
  readonly #choices: AlsChoices | undefined;
  readonly #options: AlsPlanOptions;

  constructor(
    profile: RatingsProfile,
    params: SizedAlsParams,
    devices: PlanDevices,
    choices: AlsChoices | undefined,
    options: AlsPlanOptions,
  ) {
    this.params = params;
    this.#profile = profile;
    this.#devices = devices;
    this.#choices = choices;
    this.#options = options;
  }

  problemOn(compute = this.#devices.compute): AlsProblem {
    const devices = { ...this.#devices, compute };
    return alsProblem(this.#profile, this.params, devices, this.#choices, this.#options);
  }

  /** The plan of a grid (default: the usual grid). Throws CapacityError if it does not fit. */
  planOf(grid?: AlsGrid, compute = this.#devices.compute): PhysicalPlan {
    return requireHost(this.#plan(grid, { ...this.#devices, compute }), this.#options.hostBytes);
  }

  /** The same training on devices that each have `bytes` bytes of memory. */
  onDevicesOf(bytes: number): PlannedGrids {
    const compute = this.#devices.compute.map((device) => ({ ...device, capacityBytes: bytes }));
    const host = compute.find(({ place }) => place === this.#devices.host.place) ?? this.#devices.host;
    return new PlannedGrids(this.#profile, this.params, { compute, host }, this.#choices, this.#options);
  }

  #plan(grid: AlsGrid | undefined, devices: PlanDevices): PhysicalPlan {
    const options = { ...this.#options, grid };
    return planOfGrid(this.#profile, this.params, devices, this.#choices, options);
  }
}
