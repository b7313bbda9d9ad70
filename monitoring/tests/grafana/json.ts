import type { Dashboard, FieldConfig, FieldConfigSource, Panel, RowPanel } from '@grafana/schema';
import type * as stateTimeline from '@grafana/schema/dist/esm/raw/composable/statetimeline/panelcfg/x/StateTimelinePanelCfg_types.gen';
import type * as stat from '@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen';
import type * as table from '@grafana/schema/dist/esm/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen';
import type * as timeSeries from '@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';

// A type as JSON writes it: the values of an enumeration are texts.
type Json<T> = T extends string
  ? `${T}`
  : T extends (infer Item)[]
    ? Json<Item>[]
    : T extends object
      ? { [Key in keyof T]: Json<T[Key]> }
      : T;

// Grafana's type of a panel accepts any options.
type Of<Type, Options, Custom> = Omit<Panel, 'type' | 'options' | 'fieldConfig'> & {
  type: Type;
  options: Partial<Options>;
  fieldConfig: Omit<FieldConfigSource, 'defaults'> & {
    defaults: Omit<FieldConfig, 'custom'> & { custom: Partial<Custom> };
  };
};

export type Checked = Json<
  Omit<Dashboard, 'panels'> & {
    panels: (
      | RowPanel
      | Of<'stat', stat.Options, Record<string, never>>
      | Of<'timeseries', timeSeries.Options, timeSeries.FieldConfig>
      | Of<'state-timeline', stateTimeline.Options, stateTimeline.FieldConfig>
      | Of<'table', table.Options, table.FieldConfig>
    )[];
  }
>;
