// A dashboard in a browser, drawn by the libraries of Grafana's frontend: @grafana/scenes runs
// variables, queries, transformations and overrides, and @grafana/ui draws panels and values. The
// glue between them, the data source and the state timeline are ours, because these libraries do
// not contain them.
import {
  DataSourceApi,
  EventBusSrv,
  FieldType,
  LoadingState,
  PanelPlugin,
  ThemeContext,
  cacheFieldDisplayNames,
  createTheme,
  displayNameOverrideProcessor,
  formattedValueToString,
  getFieldDisplayName,
  getFieldDisplayValues,
  identityOverrideProcessor,
  numberOverrideProcessor,
  standardFieldConfigEditorRegistry,
  standardTransformers,
  standardTransformersRegistry,
  thresholdsOverrideProcessor,
  toDataFrame,
  unitOverrideProcessor,
  valueMappingsOverrideProcessor,
} from '@grafana/data';
import { initPluginTranslations } from '@grafana/i18n';
import {
  config,
  setAppEvents,
  setDataSourceSrv,
  setPluginImportUtils,
  setRunRequest,
} from '@grafana/runtime';
import {
  DataSourceVariable,
  EmbeddedScene,
  QueryVariable,
  SceneDataTransformer,
  SceneGridItem,
  SceneGridLayout,
  SceneGridRow,
  SceneQueryRunner,
  SceneTimePicker,
  SceneTimeRange,
  SceneVariableSet,
  VariableValueSelectors,
  VizPanel,
  sceneGraph,
} from '@grafana/scenes';
import {
  BigValue,
  GlobalStyles,
  PortalContainer,
  TimeSeries,
  VizLayout,
  VizLegend,
  VizRepeater,
} from '@grafana/ui';
import { TableNG } from '@grafana/ui/unstable';
import React from 'react';
import { createRoot } from 'react-dom/client';
import { MemoryRouter } from 'react-router-dom';
import { from, map } from 'rxjs';

const theme = createTheme({ colors: { mode: 'light' } });
config.theme2 = theme;

// The queries that Grafana's data source for Prometheus sends, and the frames that it returns.
class Prometheus extends DataSourceApi {
  constructor(settings, { url, scrapeSeconds }) {
    super(settings);
    Object.assign(this, { url, scrapeSeconds });
  }

  async ask(path, parameters) {
    const response = await fetch(`${this.url}/api/v1/${path}`, {
      method: 'POST',
      body: new URLSearchParams(parameters),
    });
    const { status, error, data } = await response.json();
    if (status !== 'success') {
      throw new Error(`${parameters.query}: ${error}`);
    }
    return data.result;
  }

  query(request) {
    return from(
      Promise.all(request.targets.map((target) => this.frames(target, request))).then((frames) => ({
        data: frames.flat(),
      })),
    );
  }

  async frames(target, request) {
    const step = Math.max(this.scrapeSeconds, request.intervalMs / 1000);
    const { expr, format, refId, legendFormat } = target;
    const query = interpolate(expr, request.scopedVars).replaceAll(
      '$__rate_interval',
      `${Math.ceil(step + 4 * this.scrapeSeconds)}s`,
    );
    const end = request.range.to.unix();
    const result = target.instant
      ? await this.ask('query', { query, time: end })
      : await this.ask('query_range', { query, start: request.range.from.unix(), end, step });
    const series = result.map(({ metric: { __name__, ...labels }, value, values = [value] }) => ({
      labels,
      values,
    }));
    if (format === 'table') {
      return [tableOf(refId, series)];
    }
    return series.map(({ labels, values }) => {
      const all = Object.entries(labels).map(([name, value]) => `${name}="${value}"`);
      const legend =
        legendFormat === '__auto'
          ? `{${all.join(', ')}}`
          : legendFormat.replaceAll(/\{\{\s*(\w+)\s*\}\}/g, (_, name) => labels[name] ?? name);
      return toDataFrame({
        refId,
        name: legend,
        fields: [
          {
            name: 'Time',
            type: FieldType.time,
            values: values.map(([time]) => time * 1000),
            config: {},
          },
          {
            name: 'Value',
            type: FieldType.number,
            labels,
            values: values.map(([, value]) => Number(value)),
            config: { displayNameFromDS: legend },
          },
        ],
      });
    });
  }

  // The query of a variable: label_values(SERIES, LABEL).
  async metricFindQuery({ query }, { scopedVars }) {
    const [, series, label] = /^label_values\((.*), (\w+)\)$/.exec(interpolate(query, scopedVars));
    const result = await this.ask('query', { query: `group by (${label}) (${series})` });
    return result.map(({ metric }) => ({ text: metric[label] }));
  }
}

// Joins the chosen values of a variable to a regular expression. The value of "All" is already one.
function interpolate(text, scopedVars) {
  const format = (value, variable) => {
    const values = [value].flat();
    const isPattern = sceneGraph.lookupVariable(variable.name, scene)?.hasAllValue?.();
    return isPattern || values.length === 1 ? values.join('|') : `(${values.join('|')})`;
  };
  return sceneGraph.interpolate(scopedVars.__sceneObject.value.valueOf(), text, scopedVars, format);
}

function tableOf(refId, series) {
  const names = [...new Set(series.flatMap(({ labels }) => Object.keys(labels)))].sort();
  return toDataFrame({
    refId,
    fields: [
      {
        name: 'Time',
        type: FieldType.time,
        values: series.map(({ values: [[time]] }) => time * 1000),
      },
      ...names.map((name) => ({
        name,
        type: FieldType.string,
        values: series.map(({ labels }) => labels[name] ?? ''),
      })),
      {
        name: 'Value',
        type: FieldType.number,
        values: series.map(({ values: [[, value]] }) => Number(value)),
      },
    ],
  });
}

function Stat({ data, options, fieldConfig, replaceVariables, timeZone, width, height }) {
  const getValues = () =>
    getFieldDisplayValues({
      fieldConfig,
      reduceOptions: options.reduceOptions,
      data: data.series,
      theme,
      timeZone,
      replaceVariables,
    });
  return (
    <VizRepeater
      getValues={getValues}
      source={data}
      width={width}
      height={height}
      orientation={options.orientation}
      autoGrid
      renderValue={({ value: { display }, width, height, count }) => (
        <BigValue
          value={display}
          count={count}
          theme={theme}
          width={width}
          height={height}
          colorMode={options.colorMode}
          graphMode={options.graphMode}
          justifyMode={options.justifyMode}
          textMode={options.textMode}
        />
      )}
    />
  );
}

function Lines({ data, options, timeRange, timeZone, width, height }) {
  return (
    <TimeSeries
      frames={data.series}
      timeRange={timeRange}
      timeZone={timeZone}
      legend={options.legend}
      width={width}
      height={height}
    />
  );
}

function StateTimeline({ data, timeRange, width, height }) {
  const start = timeRange.from.valueOf();
  const length = timeRange.to.valueOf() - start;
  const rows = data.series.map((frame) => {
    const times = frame.fields[0].values;
    const field = frame.fields[1];
    const spans = [];
    times.forEach((time, i) => {
      const { text, color } = field.display(field.values[i]);
      const until = times[i + 1] ?? time;
      const last = spans.at(-1);
      if (last?.text === text) {
        last.until = until;
      } else {
        spans.push({ time, until, text, color });
      }
    });
    return { name: getFieldDisplayName(field, frame, data.series), spans };
  });
  const states = new Map(
    rows
      .flatMap(({ spans }) => spans)
      .map(({ text, color }) => [text, { label: text, color, yAxis: 1 }]),
  );
  const legend = (
    <VizLayout.Legend placement="bottom">
      <VizLegend items={[...states.values()]} displayMode="list" placement="bottom" />
    </VizLayout.Legend>
  );
  return (
    <VizLayout width={width} height={height} legend={legend}>
      {(width, height) => {
        const names = Math.min(220, width / 3);
        const of = (time) => ((time - start) / length) * (width - names);
        return (
          <div style={{ height, overflow: 'hidden' }}>
            {rows.map(({ name, spans }) => (
              <div
                key={name}
                style={{
                  position: 'relative',
                  height: height / rows.length,
                  fontSize: Math.min(12, height / rows.length),
                  lineHeight: 1.1,
                }}
              >
                <span
                  style={{
                    display: 'inline-block',
                    width: names - 8,
                    overflow: 'hidden',
                    textAlign: 'right',
                    whiteSpace: 'nowrap',
                  }}
                >
                  {name}
                </span>
                {spans.map(({ time, until, text, color }) => (
                  <span
                    key={time}
                    title={text}
                    style={{
                      position: 'absolute',
                      left: names + of(time),
                      width: of(until) - of(time),
                      height: '90%',
                      background: color,
                      opacity: 0.8,
                    }}
                  />
                ))}
              </div>
            ))}
          </div>
        );
      }}
    </VizLayout>
  );
}

function Rows({ data, options, width, height }) {
  cacheFieldDisplayNames(data.series);
  return (
    <TableNG
      data={data.series[0]}
      width={width}
      height={height}
      noHeader={!options.showHeader}
      cellHeight={options.cellHeight}
      structureRev={data.structureRev}
      getActions={() => []}
    />
  );
}

const property = (id, process, defaultValue) => ({
  id,
  path: id,
  name: id,
  process,
  defaultValue,
  settings: {},
  shouldApply: () => true,
  editor: () => null,
  override: () => null,
});

// Properties of the fields of each panel, with the defaults of Grafana.
const own = {
  timeseries: {
    drawStyle: 'line',
    lineWidth: 1,
    lineInterpolation: 'linear',
    lineStyle: { fill: 'solid' },
    showPoints: 'auto',
    pointSize: 5,
    spanNulls: false,
    fillOpacity: 0,
    gradientMode: 'none',
    stacking: { mode: 'none', group: 'A' },
    axisPlacement: 'auto',
    axisLabel: '',
    axisColorMode: 'text',
    axisSoftMax: undefined,
    scaleDistribution: { type: 'linear' },
    thresholdsStyle: { mode: 'off' },
    hideFrom: { tooltip: false, viz: false, legend: false },
  },
  'state-timeline': { fillOpacity: 70, lineWidth: 0 },
  table: { align: 'auto', cellOptions: { type: 'auto' }, inspect: false },
  stat: {},
};

function pluginOf(id, Component) {
  const orNothing = (props) =>
    props.data.series.some(({ length }) => length) ? (
      <Component {...props} />
    ) : (
      <p style={{ textAlign: 'center' }}>No data</p>
    );
  const plugin = new PanelPlugin(orNothing).useFieldConfig({
    useCustomConfig: (builder) => {
      for (const [name, value] of Object.entries(own[id])) {
        builder.addCustomEditor(property(name, identityOverrideProcessor, value));
      }
    },
  });
  plugin.meta = { id, name: id, info: { version: '' } };
  return plugin;
}

let scene;

// Builds the scene of a dashboard in classic JSON.
function sceneOf(dashboard, { from, to, variables: chosen = {} }) {
  const common = ({ name, label }) => ({
    name,
    label,
    ...(chosen[name] && { value: chosen[name], text: chosen[name] }),
  });
  const variables = dashboard.templating.list.map((variable) =>
    variable.type === 'datasource'
      ? new DataSourceVariable({ ...common(variable), pluginId: variable.query })
      : new QueryVariable({
          value: variable.current?.value ?? '',
          text: variable.current?.text ?? '',
          ...common(variable),
          datasource: variable.datasource,
          query: variable.query,
          isMulti: variable.multi,
          includeAll: variable.includeAll,
          allValue: variable.allValue,
          refresh: variable.refresh,
          sort: variable.sort,
        }),
  );
  const panelOf = ({
    type,
    title,
    description,
    options,
    fieldConfig,
    targets,
    datasource,
    transformations = [],
  }) =>
    new VizPanel({
      pluginId: type,
      title,
      description,
      options,
      fieldConfig,
      $data: new SceneDataTransformer({
        $data: new SceneQueryRunner({ datasource, queries: targets }),
        transformations,
      }),
    });
  const children = dashboard.panels.map((panel) => {
    const { x, y, w: width, h: height } = panel.gridPos;
    return panel.type === 'row'
      ? new SceneGridRow({ title: panel.title, y, isCollapsed: panel.collapsed })
      : new SceneGridItem({ x, y, width, height, body: panelOf(panel) });
  });
  const inRows = [];
  for (const child of children) {
    const row = inRows.at(-1);
    if (child instanceof SceneGridRow || !row) {
      inRows.push(child);
    } else {
      row.setState({ children: [...row.state.children, child] });
    }
  }
  return new EmbeddedScene({
    $timeRange: new SceneTimeRange({
      from: from ?? dashboard.time.from,
      to: to ?? dashboard.time.to,
      timeZone: 'utc',
    }),
    $variables: new SceneVariableSet({ variables }),
    controls: [new VariableValueSelectors({}), new SceneTimePicker({})],
    body: new SceneGridLayout({ children: inRows, isLazy: false }),
  });
}

// The options are the `url` of Prometheus, `scrapeSeconds`, and optionally `from`, `to`, and
// `variables` with the chosen values.
window.draw = async (dashboard, options) => {
  const settings = {
    uid: 'tested',
    name: 'Prometheus',
    type: 'prometheus',
    meta: { id: 'prometheus' },
    isDefault: true,
  };
  const source = new Prometheus(settings, options);
  const get = async (reference, scopedVars) => {
    const uid = interpolate(reference.uid, scopedVars);
    if (uid !== settings.uid) {
      throw new Error(`no data source ${uid}`);
    }
    return source;
  };
  setDataSourceSrv({ getList: () => [settings], getInstanceSettings: () => settings, get });
  setRunRequest((source, request) =>
    source.query(request).pipe(
      map(({ data }) => ({
        state: LoadingState.Done,
        series: data,
        timeRange: request.range,
        request,
      })),
    ),
  );
  setAppEvents(new EventBusSrv());
  await initPluginTranslations('grafana-scenes');
  standardTransformersRegistry.setInit(() =>
    [
      ...new Map(
        Object.values(standardTransformers).map((transformation) => [
          transformation.id,
          transformation,
        ]),
      ),
    ].map(([id, transformation]) => ({
      id,
      name: transformation.name,
      transformation: async () => transformation,
      editor: () => null,
    })),
  );
  standardFieldConfigEditorRegistry.setInit(() => [
    property('unit', unitOverrideProcessor),
    property('min', numberOverrideProcessor),
    property('max', numberOverrideProcessor),
    property('decimals', numberOverrideProcessor),
    property('displayName', displayNameOverrideProcessor),
    property('color', identityOverrideProcessor),
    property('mappings', valueMappingsOverrideProcessor),
    property('thresholds', thresholdsOverrideProcessor),
  ]);
  const plugins = { stat: Stat, timeseries: Lines, 'state-timeline': StateTimeline, table: Rows };
  for (const [id, component] of Object.entries(plugins)) {
    plugins[id] = pluginOf(id, component);
  }
  setPluginImportUtils({
    getPanelPluginFromCache: (id) => plugins[id],
    importPanelPlugin: async (id) => plugins[id],
  });
  scene = sceneOf(dashboard, options);
  createRoot(document.getElementById('page')).render(
    <ThemeContext.Provider value={theme}>
      <GlobalStyles />
      <MemoryRouter>
        <h1 style={{ margin: 16 }}>{dashboard.title}</h1>
        <scene.Component model={scene} />
      </MemoryRouter>
      <PortalContainer />
    </ThemeContext.Provider>,
  );
};

// What the page shows: variables with their options, and panels with the fields and
// the last values as drawn.
window.seen = () => ({
  variables: Object.fromEntries(
    scene.state.$variables.state.variables.map(({ state }) => [
      state.name,
      state.options.map(({ value }) => value),
    ]),
  ),
  panels: sceneGraph
    .findAllObjects(scene, (object) => object instanceof VizPanel)
    .map((panel) => {
      const { data } = sceneGraph.getData(panel).state;
      const { title, _pluginLoadError: notLoaded } = panel.state;
      const { series } = panel.applyFieldConfig(data);
      const errors = [data?.error, ...(data?.errors ?? [])].map((error) => error?.message);
      const fields = series.flatMap((frame) =>
        frame.fields
          .filter(({ type }) => type !== FieldType.time)
          .map((field) => ({
            name: getFieldDisplayName(field, frame, series),
            last: field.values.length
              ? formattedValueToString(field.display(field.values.at(-1)))
              : null,
          })),
      );
      return { title, state: data?.state, errors: [notLoaded, ...errors].filter(Boolean), fields };
    }),
});
