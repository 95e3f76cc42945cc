; Inno Setup 6: the installer of the frozen program.
;
;   python packaging\bundle.py
;   iscc /DAppVersion=0.1.0 packaging\windows\draftscope.iss
;
; For one person, without administrator's rights (who wants all users: setup.exe /ALLUSERS). Uninstalling removes what
; was installed and the compiled kernels; conversations, runs and settings are the person's and stay.

#ifndef AppVersion
  #error Say the version: iscc /DAppVersion=1.2.3 draftscope.iss
#endif
#ifndef Bundle
  #define Bundle "..\..\build\bundle\draftscope"
#endif

[Setup]
AppId={{6E1B0C52-3C7D-4B7C-9B0F-5D5A2C1F8A44}
AppName=Draftscope
AppVersion={#AppVersion}
AppPublisher=The Draftscope authors
VersionInfoVersion={#AppVersion}
VersionInfoDescription=Installs Draftscope
LicenseFile=..\..\LICENSE
SetupIconFile=..\icons\draftscope.ico
UninstallDisplayIcon={app}\draftscope.exe
UninstallDisplayName=Draftscope
DefaultDirName={autopf}\Draftscope
DefaultGroupName=Draftscope
DisableProgramGroupPage=yes
DisableDirPage=auto
PrivilegesRequired=lowest
PrivilegesRequiredOverridesAllowed=commandline
ArchitecturesAllowed=x64compatible
ArchitecturesInstallIn64BitMode=x64compatible
MinVersion=10.0.17763
ChangesAssociations=yes
ChangesEnvironment=yes
CloseApplications=yes
Compression=lzma2/max
SolidCompression=yes
LZMAUseSeparateProcess=yes
WizardStyle=modern
OutputDir=..\..\dist
OutputBaseFilename=draftscope-{#AppVersion}-windows-x64-setup
#ifdef SignTool
SignTool={#SignTool}
SignedUninstaller=yes
#endif

[Tasks]
Name: "desktopicon"; Description: "{cm:CreateDesktopIcon}"; Flags: unchecked
Name: "associate"; Description: "Offer Draftscope for .gguf files and runs (the program that opens them now stays)"
Name: "path"; Description: "Let terminals find draftscope-cli (adds the folder to your PATH)"; Flags: unchecked

[Files]
Source: "{#Bundle}\*"; DestDir: "{app}"; Flags: recursesubdirs ignoreversion

[InstallDelete]
; Modules of an earlier version must not be found beside this one's.
Type: filesandordirs; Name: "{app}\_internal"

[Icons]
Name: "{group}\Draftscope"; Filename: "{app}\draftscope.exe"; AppUserModelID: "io.github.draftscope.Draftscope"
Name: "{autodesktop}\Draftscope"; Filename: "{app}\draftscope.exe"; Tasks: desktopicon; AppUserModelID: "io.github.draftscope.Draftscope"

[Registry]
; "Open with" entries: none of them takes a file type away from another program.
Root: HKA; Subkey: "Software\Classes\Draftscope.Model"; ValueType: string; ValueData: "GGUF model"; Flags: uninsdeletekey; Tasks: associate
Root: HKA; Subkey: "Software\Classes\Draftscope.Model\DefaultIcon"; ValueType: string; ValueData: "{app}\draftscope.exe,0"; Tasks: associate
Root: HKA; Subkey: "Software\Classes\Draftscope.Model\shell\open\command"; ValueType: string; ValueData: """{app}\draftscope.exe"" ""%1"""; Tasks: associate
Root: HKA; Subkey: "Software\Classes\Draftscope.Run"; ValueType: string; ValueData: "Draftscope run"; Flags: uninsdeletekey; Tasks: associate
Root: HKA; Subkey: "Software\Classes\Draftscope.Run\DefaultIcon"; ValueType: string; ValueData: "{app}\draftscope.exe,0"; Tasks: associate
Root: HKA; Subkey: "Software\Classes\Draftscope.Run\shell\open\command"; ValueType: string; ValueData: """{app}\draftscope.exe"" ""%1"""; Tasks: associate
Root: HKA; Subkey: "Software\Classes\.gguf\OpenWithProgids"; ValueType: string; ValueName: "Draftscope.Model"; ValueData: ""; Flags: uninsdeletevalue uninsdeletekeyifempty; Tasks: associate
Root: HKA; Subkey: "Software\Classes\.jsonl\OpenWithProgids"; ValueType: string; ValueName: "Draftscope.Run"; ValueData: ""; Flags: uninsdeletevalue uninsdeletekeyifempty; Tasks: associate

[Run]
Filename: "{app}\draftscope.exe"; Description: "{cm:LaunchProgram,Draftscope}"; Flags: nowait postinstall skipifsilent

[UninstallDelete]
Type: filesandordirs; Name: "{localappdata}\draftscope\Cache"

[Code]
const EnvironmentKey = 'Environment';

function PathOf(): String;
begin
  if not RegQueryStringValue(HKCU, EnvironmentKey, 'Path', Result) then
    Result := '';
end;

procedure AddToPath();
var
  Path: String;
begin
  Path := PathOf();
  if Pos(';' + Uppercase(ExpandConstant('{app}')) + ';', ';' + Uppercase(Path) + ';') > 0 then
    Exit;
  if (Path <> '') and (Path[Length(Path)] <> ';') then
    Path := Path + ';';
  RegWriteExpandStringValue(HKCU, EnvironmentKey, 'Path', Path + ExpandConstant('{app}'));
end;

procedure TakeFromPath();
var
  Path: String;
  Place: Integer;
begin
  Path := ';' + PathOf() + ';';
  Place := Pos(';' + Uppercase(ExpandConstant('{app}')) + ';', Uppercase(Path));
  if Place = 0 then
    Exit;
  Delete(Path, Place, Length(ExpandConstant('{app}')) + 1);
  Path := Copy(Path, 2, Length(Path) - 2);
  if Path = '' then
    RegDeleteValue(HKCU, EnvironmentKey, 'Path')
  else
    RegWriteExpandStringValue(HKCU, EnvironmentKey, 'Path', Path);
end;

procedure CurStepChanged(Step: TSetupStep);
begin
  if (Step = ssPostInstall) and WizardIsTaskSelected('path') then
    AddToPath();
end;

procedure CurUninstallStepChanged(Step: TUninstallStep);
begin
  if Step = usPostUninstall then
    TakeFromPath();
end;
